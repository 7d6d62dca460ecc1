package store_test

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/shutdown/internal/store"
)

// written returns the text that is written for a record, and the sizes of its pieces.
func written(t testing.TB, r store.Record) (text []byte, pieces []int) {
	t.Helper()
	var d disk
	o := options(t.TempDir())
	o.Write = d.write
	s := locked(t, o)
	save(t, s, r)
	require.NoError(t, s.Close(time.Now().Add(time.Minute)))
	return d.written[0], d.pieces
}

// The text of a record is that of json.Marshal.
func TestRecordIsJSON(t *testing.T) {
	odd := store.Record{Version: 3, BootID: "\xff\"\\/\u2028\x7f\n", Report: store.Report{Pods: []store.Pod{{}, {Ended: at(1).In(time.FixedZone("east", 3600))}}}}
	confusing := example()
	confusing.Timetable = json.RawMessage(`{"debts":[{"kind":"","pod":null}],"report":{"pods":[{}]}}`)
	confusing.Announcements[0].Origin = string(confusing.Timetable)
	confusing.Report.Origin, confusing.Report.Errors = string(confusing.Timetable), []string{string(confusing.Timetable)}
	for _, r := range []store.Record{{Version: 3, BootID: "one"}, odd, example(), confusing} {
		got, _ := written(t, r)
		require.JSONEq(t, asJSON(t, r), string(got))
	}
}

// The pods and debts are read one by one, and their text is never in memory as a whole.
func TestManyPodsAreWrittenInPieces(t *testing.T) {
	r := example()
	r.Report.Pods, r.Debts = manyPods(10_000), nil
	for range 10_000 {
		r.Debts = append(r.Debts, store.Debt{Kind: store.DebtStatus, Pod: pod("a")})
	}
	text, pieces := written(t, r)
	require.Greater(t, len(text), 2<<20)
	for _, size := range pieces {
		require.Less(t, size, 40<<10)
	}
	var got store.Record
	require.NoError(t, json.Unmarshal(text, &got))
	require.Equal(t, r.Report, got.Report)
	require.Equal(t, r.Debts, got.Debts)
}

// manyPods returns pods that are planned.
func manyPods(n int) []store.Pod {
	pods, grace := make([]store.Pod, n), int64(30)
	for i := range pods {
		pods[i] = store.Pod{
			Namespace: "default", Name: fmt.Sprintf("web-7d9c5b8f6d-%05d", i), UID: types.UID(fmt.Sprintf("6b0b0a4e-6a0e-4a4b-9d6f-1f7f6f9%05d", i)),
			Priority: 1000, Bucket: int32(i % 2 * 1000), GraceSeconds: &grace,
		}
	}
	return pods
}

// What cannot be written is an error, and nothing more is asked for.
func TestRecordThatCannotBeWritten(t *testing.T) {
	year10000 := time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		change func(*store.Record)
		err    string
	}{
		"a time":    {func(r *store.Record) { r.Report.Started = year10000 }, "year outside of range"},
		"of a pod":  {func(r *store.Record) { r.Report.Pods[0].Ended = year10000 }, "year outside of range"},
		"timetable": {func(r *store.Record) { r.Timetable = json.RawMessage(`{"a":`) }, "json.RawMessage"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := locked(t, options(dir))
			r := example()
			r.Report.Cancelled = false
			save(t, s, r)
			test.change(&r)
			require.ErrorContains(t, await(t, s.Save(0, content(r))), "failed to store the shutdown state: failed to write ")
			require.ErrorContains(t, await(t, s.Save(0, content(r))), test.err)
			require.NotNil(t, read(t, s).Record, "the old one stays")
			require.NoError(t, s.Close(time.Now().Add(time.Minute)))
		})
	}
	asked := 0
	endless := func() store.Content {
		return store.Content{Pods: func(yield func(*store.Pod) bool) {
			for yield(&store.Pod{Name: "a"}) {
				asked++
			}
		}}
	}
	o := options(t.TempDir())
	o.Write = func(_ string, encode func(io.Writer) error) error { return encode(fullDisk{}) }
	s := locked(t, o)
	require.ErrorIs(t, await(t, s.Save(0, endless)), errFull)
	require.Less(t, asked, 10_000)
	require.NoError(t, s.Close(time.Now().Add(time.Minute)))
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// A string of any bytes is written as json.Marshal writes it.
func FuzzString(f *testing.F) {
	for _, text := range []string{"", "plain", `"`, `\`, "\x00\x1f", "\x7f", "<&>", "ü\u2028", "\xff\xc0", "\U0001f600", "\xed\xa0\x80"} {
		f.Add(text)
	}
	o, d := options(f.TempDir()), disk{}
	o.Write = d.write
	s := locked(f, o)
	f.Fuzz(func(t *testing.T, text string) {
		d.written = nil
		r := store.Record{Version: 3, BootID: "one", Report: store.Report{Origin: text, Pods: []store.Pod{{Name: text}}}}
		save(t, s, r)
		require.JSONEq(t, asJSON(t, r), string(d.written[0]))
		require.True(t, utf8.Valid(d.written[0]))
	})
}

// BenchmarkSave writes 10,000 pods that a drain means to kill. "plain" builds their records in
// memory and uses json.Marshal.
func BenchmarkSave(b *testing.B) {
	for _, n := range []int{110, 10_000} {
		pods := manyPods(n)
		for name, save := range map[string]func(*store.Store, io.Writer) error{
			"kubegrace": func(s *store.Store, _ io.Writer) error {
				_, err := s.Save(0, func() store.Content { return store.Content{Pods: each(pods)} }).Wait(b.Context())
				return err
			},
			"plain": func(_ *store.Store, w io.Writer) error {
				text, err := json.Marshal(store.Record{Report: store.Report{Pods: append([]store.Pod(nil), pods...)}})
				if err == nil {
					_, err = w.Write(text)
				}
				return err
			},
		} {
			b.Run(fmt.Sprintf("pods=%d/way=%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				o := options(b.TempDir())
				o.Write = func(_ string, encode func(io.Writer) error) error { return encode(io.Discard) }
				s := locked(b, o)
				for b.Loop() {
					if err := save(s, io.Discard); err != nil {
						b.Fatal(err)
					}
				}
				require.NoError(b, s.Close(time.Now().Add(time.Minute)))
			})
		}
	}
}

func each[T any](all []T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range all {
			if !yield(&all[i]) {
				return
			}
		}
	}
}
