package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/store"
)

// What is stored is read again, by the next agent and by a program that shows it.
func TestRecordIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	none, err := store.ReadRecord(dir)
	require.NoError(t, err)
	require.Nil(t, none)
	s := locked(t, options(dir))
	require.Equal(t, store.Contents{}, read(t, s), "no file yet")

	early := store.Record{Report: store.Report{Started: at(1)}}
	stored := early
	stored.Version, stored.BootID = 3, "one"
	for _, test := range []struct{ save, read store.Record }{{early, stored}, {example(), example()}} {
		save(t, s, test.save)
		found := read(t, s)
		require.Equal(t, store.Contents{Record: &test.read, Debts: test.read.Debts}, found)
		shown, err := store.ReadRecord(dir)
		require.NoError(t, err)
		require.Equal(t, &test.read, shown)
	}
	require.NoError(t, s.Close(time.Now().Add(time.Minute)))
	require.Equal(t, store.Contents{}, read(t, store.New(store.Options{})), "without a folder nothing is read")
}

// The kubelet's file has its two fields. It is read beside the record.
func TestTimesAreTheKubelets(t *testing.T) {
	dir := t.TempDir()
	s := locked(t, options(dir))
	for _, times := range []store.Times{{StartTime: at(1)}, {StartTime: at(1), EndTime: at(31)}} {
		require.NoError(t, await(t, s.SaveTimes(times)))
		require.Equal(t, store.Contents{Times: times}, read(t, s))
	}
	text, err := os.ReadFile(filepath.Join(dir, "graceful_node_shutdown_state"))
	require.NoError(t, err)
	require.Equal(t, `{"startTime":"2026-09-30T12:00:01.123456789Z","endTime":"2026-09-30T12:00:31.123456789Z"}`, string(text))
	require.Equal(t, store.Contents{}, read(t, store.New(store.Options{Dir: dir, Boot: boot})), "not without Options.Times")

	save(t, s, store.Record{Report: store.Report{Started: at(2)}})
	require.Equal(t, store.Times{StartTime: at(1), EndTime: at(31)}, read(t, s).Times)
	require.ErrorContains(t, await(t, s.SaveTimes(store.Times{StartTime: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)})), "failed to store the shutdown state: ")
	require.NoError(t, s.Close(time.Now().Add(time.Minute)))
}

func TestHalfOfTheTimesIsUnusable(t *testing.T) {
	for _, text := range []string{`{"startTime":"2026-09-30T12:00:01Z"}`, `{"endTime":"2026-09-30T12:00:01Z"}`} {
		dir := t.TempDir()
		path := filepath.Join(dir, store.TimesFile)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		found := read(t, store.New(options(dir)))
		require.Zero(t, found.Times)
		require.Len(t, found.Errs, 1)
		require.EqualError(t, found.Errs[0], "shutdown state "+path+" is not usable: it needs both startTime and endTime")
	}
}

// A file that is not usable gives an error that names it and nothing else. The next write replaces
// it.
func TestUnusableFiles(t *testing.T) {
	for name, text := range map[string]string{
		"empty":        "",
		"torn":         `{"startTime":"2026-09-30T12:00:01Z","endTi`,
		"zeros":        strings.Repeat("\x00", 80),
		"not an obj":   `[1,2,3]`,
		"null":         `null`,
		"other object": `{"kind":"Pod"}`,
		"other types":  `{"startTime":17,"endTime":"soon","version":"one"}`,
		"more behind":  `{"startTime":"2026-09-30T12:00:01Z","endTime":"2026-09-30T12:00:01Z","version":3,"bootID":"one"} {}`,
		"debts":        `{"debts":{"kind":"status"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range []string{store.TimesFile, store.RecordFile} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
			}
			s := locked(t, options(dir))
			found := read(t, s)
			require.Len(t, found.Errs, 2)
			require.ErrorContains(t, found.Errs[0], "shutdown state "+filepath.Join(dir, store.TimesFile)+" is not usable: ")
			require.ErrorContains(t, found.Errs[1], "shutdown state "+filepath.Join(dir, store.RecordFile)+" is not usable: ")
			require.Equal(t, store.Contents{Unusable: true, Errs: found.Errs}, found)
			save(t, s, example())
			require.NoError(t, await(t, s.SaveTimes(store.Times{StartTime: at(1)})))
			require.Empty(t, read(t, s).Errs)
			require.NoError(t, s.Close(time.Now().Add(time.Minute)))
		})
	}
}

// A record that breaks a rule is not usable. Its debts are, as far as they keep theirs.
func TestRecordThatBreaksARule(t *testing.T) {
	for want, change := range map[string]func(*store.Record){
		"version 2 is not known, only 3": func(r *store.Record) { r.Version = 2 },
		"bootID is empty":                func(r *store.Record) { r.BootID = "" },
		"t0MonotonicNanoseconds -1 and hMonotonicNanoseconds 3600000000000 must not be negative": func(r *store.Record) { r.T0 = -1 },
		"t0MonotonicNanoseconds 60000000000 and hMonotonicNanoseconds -1 must not be negative":   func(r *store.Record) { r.H = -1 },
		"begun is -1 and done is 1, with a timetable of 11 bytes":                                func(r *store.Record) { r.Begun = -1 },
		"begun is 2 and done is -1, with a timetable of 11 bytes":                                func(r *store.Record) { r.Done = -1 },
		"begun is 2 and done is 1, with a timetable of 0 bytes":                                  func(r *store.Record) { r.Timetable = json.RawMessage("null") },
		"announcements has a negative deadlineMonotonicNanoseconds":                              func(r *store.Record) { r.Announcements[0].Deadline = -1 },
		"report.pods has a pod without a name":                                                   func(r *store.Record) { r.Report.Pods[1].Name = "" },
		"its shutdown begins in 1h0m0s":                                                          func(r *store.Record) { r.T0 = 2 * time.Hour },
		"debts has one without a pod": func(r *store.Record) {
			r.Debts = append([]store.Debt{{Kind: store.DebtReady}, {Kind: store.DebtReady, Pod: pod("")}}, r.Debts...)
		},
		`debts has the unknown kind "odd"`: func(r *store.Record) { r.Debts = append(r.Debts, store.Debt{Kind: "odd", Pod: pod("c")}) },
	} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				r := example()
				change(&r)
				text, err := json.Marshal(r)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(dir, store.RecordFile), text, 0o600))
				found := read(t, store.New(options(dir)))
				require.Nil(t, found.Record)
				require.Equal(t, example().Debts, found.Debts)
				require.Len(t, found.Errs, 1)
				require.ErrorContains(t, found.Errs[0], "is not usable: "+want)
			})
		})
	}
}

// A record of another boot has other times: none is in the future.
func TestRecordOfAnotherBoot(t *testing.T) {
	dir := t.TempDir()
	s := locked(t, options(dir))
	save(t, s, store.Record{BootID: "two", T0: 2 * time.Hour, H: 3 * time.Hour})
	found := read(t, s)
	require.Empty(t, found.Errs)
	require.Equal(t, "two", found.Record.BootID)
	require.NoError(t, s.Close(time.Now().Add(time.Minute)))
}

// A file that is cut off at any length, or whose end consists of zeros because it was not written
// to the disk, is not used. The debts before the tear are.
func TestFileThatIsTornAnywhere(t *testing.T) {
	dir := t.TempDir()
	s := locked(t, options(dir))
	save(t, s, example())
	require.NoError(t, await(t, s.SaveTimes(store.Times{StartTime: at(1), EndTime: at(31)})))
	require.NoError(t, s.Close(time.Now().Add(time.Minute)))
	for _, name := range []string{store.RecordFile, store.TimesFile} {
		path := filepath.Join(dir, name)
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		for length := range whole {
			zeros := append(whole[:length:length], make([]byte, len(whole)-length)...)
			for _, torn := range [][]byte{whole[:length], zeros} {
				require.NoError(t, os.WriteFile(path, torn, 0o600))
				found := read(t, s)
				require.Len(t, found.Errs, 1, "%d of %d bytes", length, len(whole))
				require.ErrorContains(t, found.Errs[0], path)
				if name == store.TimesFile {
					require.NotNil(t, found.Record)
					continue
				}
				require.Nil(t, found.Record)
				require.Equal(t, store.Times{StartTime: at(1), EndTime: at(31)}, found.Times, "of the kubelet's file")
				// A debt ends before the bracket of its pod's next one, or of the list.
				whole := strings.Count(string(whole[:length]), `"phase":"Failed"}}}`)
				require.Equal(t, append([]store.Debt(nil), example().Debts[:min(whole, 2)]...), found.Debts, "%d bytes", length)
			}
		}
		require.NoError(t, os.WriteFile(path, whole, 0o600))
	}
}

// A disk that hangs is waited for until a time at most, or until the context ends. Each file is
// named, and what can be read is there.
func TestReadOfADiskThatHangs(t *testing.T) {
	for _, hanging := range []string{store.RecordFile, store.TimesFile, ""} {
		synctest.Test(t, func(t *testing.T) {
			over := make(chan struct{})
			o := options(t.TempDir())
			o.Read = func(path string) ([]byte, error) {
				if strings.HasSuffix(path, hanging) {
					<-over
				}
				return []byte(`{"version":3,"bootID":"one","report":{},"startTime":"2026-09-30T12:00:01Z","endTime":"2026-09-30T12:00:02Z"}`), nil
			}
			s := store.New(o)
			var calls call.Group
			ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
			defer cancel()
			begun := time.Now()
			found := s.Read(ctx, &calls, begun.Add(5*time.Second))
			require.Equal(t, 5*time.Second, time.Since(begun), "one time for both")
			require.ErrorIs(t, errors.Join(found.Errs...), call.ErrTimeSpent)
			require.Equal(t, hanging == store.TimesFile, found.Record != nil)
			require.Equal(t, hanging == store.RecordFile, !found.Times.StartTime.IsZero())
			again := s.Read(ctx, &calls, begun.Add(time.Hour))
			require.Equal(t, 8*time.Second, time.Since(begun))
			require.ErrorIs(t, errors.Join(again.Errs...), context.DeadlineExceeded)
			enough := make(chan struct{})
			close(enough)
			for _, file := range []string{store.RecordFile, store.TimesFile} {
				hangs := strings.HasSuffix(file, hanging)
				require.Equal(t, hangs, strings.Contains(fmt.Sprint(found.Errs), file))
				require.Equal(t, hangs, strings.Contains(fmt.Sprint(again.Errs), file))
				require.Equal(t, hangs, strings.Contains(fmt.Sprint(calls.Wait(enough)), file))
			}
			close(over)
			require.Empty(t, calls.Wait(nil))
		})
	}
}

// Whatever the files contain, reading them gives a result or an error. What is read can be stored
// and read again.
func FuzzRead(f *testing.F) {
	text, err := json.Marshal(example())
	require.NoError(f, err)
	f.Add(text)
	f.Add(text[:len(text)/2])
	f.Add([]byte(`{"startTime":"2026-09-30T12:00:01Z","endTime":"0001-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"version":4,"debts":[{"kind":"status","pod":{"metadata":{"name":"a"}}},7,{"kind":"ready"},{"kind":"ready","pod":{"metadata":{"name":"b","creationTimestamp":"x"}}}]}`))
	o, d := options(f.TempDir()), disk{}
	o.Read = func(string) ([]byte, error) { return text, nil }
	o.Write = d.write
	s := locked(f, o)
	f.Fuzz(func(t *testing.T, given []byte) {
		text, d.written = given, nil
		found := read(t, s)
		require.Equal(t, found.Record == nil, len(found.Errs) > 0 && strings.Contains(found.Errs[len(found.Errs)-1].Error(), store.RecordFile))
		for _, debt := range found.Debts {
			require.NotEmpty(t, debt.Pod.Name)
		}
		if found.Record == nil {
			return
		}
		if err := await(t, s.Save(0, content(*found.Record))); err == nil {
			text = d.written[0]
			require.JSONEq(t, asJSON(t, found.Record), asJSON(t, read(t, s).Record))
		}
	})
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return string(text)
}
