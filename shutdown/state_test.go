package shutdown

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/atomicfile"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

func at(second int) time.Time { return time.Date(2026, 9, 30, 12, 0, second, 123456789, time.UTC) }

// storedProgress is a shutdown in its second bucket.
func storedProgress() progress {
	return progress{
		Version:  progressVersion,
		BootID:   "6b0b0a4e-6a0e-4a4b-9d6f-1f7f6f9d0a11",
		Start:    100*time.Second + 1,
		HostEnd:  130 * time.Second,
		Schedule: plan.Schedule{{Priority: 0, Seconds: 20}, {Priority: 2_000_000_000, Seconds: 10}},
		Done:     1,
		Report:   Report{Kind: KindReboot, Started: at(0), Pods: []PodReport{{Namespace: "test", Name: "p", GrantedSeconds: 20}}},
	}
}

func TestTimesAreTheKubelets(t *testing.T) {
	dir := t.TempDir()
	stored, err := readTimes(dir)
	require.NoError(t, err)
	require.Zero(t, stored, "no file yet")

	require.NoError(t, writeTimes(atomicfile.WriteFrom, dir, times{StartTime: at(1)}))
	data, err := os.ReadFile(filepath.Join(dir, "graceful_node_shutdown_state"))
	require.NoError(t, err)
	require.Equal(t, `{"startTime":"2026-09-30T12:00:01.123456789Z","endTime":"0001-01-01T00:00:00Z"}`, string(data))

	stored, err = readTimes(dir)
	require.NoError(t, err)
	require.Equal(t, times{StartTime: at(1)}, stored)
	require.True(t, stored.EndTime.IsZero(), "not yet")

	require.NoError(t, writeTimes(atomicfile.WriteFrom, dir, times{StartTime: at(1), EndTime: at(31)}))
	stored, err = readTimes(dir)
	require.NoError(t, err)
	require.Equal(t, times{StartTime: at(1), EndTime: at(31)}, stored)
}

func TestProgressIsStored(t *testing.T) {
	dir := t.TempDir()
	none, err := readProgress(dir)
	require.NoError(t, err)
	require.Nil(t, none, "no file yet")

	want := storedProgress()
	unversioned := want
	unversioned.Version = 0
	require.NoError(t, writeProgress(atomicfile.WriteFrom, dir, unversioned))
	got, err := readProgress(dir)
	require.NoError(t, err)
	require.Equal(t, &want, got)
	require.False(t, got.ended())

	want.Report.Ended = at(30)
	require.NoError(t, writeProgress(atomicfile.WriteFrom, dir, want))
	got, err = readProgress(dir)
	require.NoError(t, err)
	require.True(t, got.ended())
}

// A file that is not usable gives an error that names it and no state. The next write replaces
// it.
func TestUnusableStateIsSurvived(t *testing.T) {
	for name, content := range map[string]string{
		"empty":        "",
		"torn":         `{"startTime":"2026-09-30T12:00:01Z","endTi`,
		"zeros":        strings.Repeat("\x00", 80),
		"not an obj":   `[1,2,3]`,
		"null":         `null`,
		"other object": `{"kind":"Pod"}`,
		"other types":  `{"startTime":17,"endTime":"soon","version":"one"}`,
		"more behind":  `{"startTime":"2026-09-30T12:00:01Z","endTime":"2026-09-30T12:00:01Z"} {}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range []string{timesFile, progressFile} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600))
			}
			stored, err := readTimes(dir)
			require.ErrorContains(t, err, "shutdown state "+filepath.Join(dir, timesFile)+" is not usable: ")
			require.Zero(t, stored)
			none, err := readProgress(dir)
			require.ErrorContains(t, err, "shutdown state "+filepath.Join(dir, progressFile)+" is not usable: ")
			require.Nil(t, none)

			require.NoError(t, writeTimes(atomicfile.WriteFrom, dir, times{StartTime: at(1)}))
			require.NoError(t, writeProgress(atomicfile.WriteFrom, dir, storedProgress()))
			_, err = readTimes(dir)
			require.NoError(t, err)
			_, err = readProgress(dir)
			require.NoError(t, err)
		})
	}
}

// The kubelet's file has both times, or none.
func TestHalfOfTheTimesIsUnusable(t *testing.T) {
	for _, content := range []string{`{"startTime":"2026-09-30T12:00:01Z"}`, `{"endTime":"2026-09-30T12:00:01Z"}`} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, timesFile), []byte(content), 0o600))
		_, err := readTimes(dir)
		require.ErrorContains(t, err, "it needs both startTime and endTime")
	}
}

func TestProgressThatCannotBeResumed(t *testing.T) {
	for want, change := range map[string]func(*progress){
		"version 1 is not known, only 2": func(p *progress) { p.Version = 1 },
		"startMonotonicNanoseconds -1 and hostEndMonotonicNanoseconds 130000000000 must not be negative": func(p *progress) { p.Start = -1 },
		"bootID is empty":                        func(p *progress) { p.BootID = "" },
		"done is 3, the schedule has 2 buckets":  func(p *progress) { p.Done = 3 },
		"done is -1, the schedule has 2 buckets": func(p *progress) { p.Done = -1 },
		"schedule is not ascending by priority":  func(p *progress) { p.Schedule[1].Priority = -1 },
	} {
		p := storedProgress()
		change(&p)
		require.EqualError(t, p.check(), want)
	}
	whole := storedProgress()
	require.NoError(t, whole.check())
}

func TestStateThatCannotBeReadOrWritten(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{timesFile, progressFile} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, file), 0o755))
	}
	_, err := readTimes(dir)
	require.ErrorContains(t, err, filepath.Join(dir, timesFile))
	_, err = readProgress(dir)
	require.ErrorContains(t, err, filepath.Join(dir, progressFile))
	require.ErrorContains(t, writeTimes(atomicfile.WriteFrom, dir, times{}), filepath.Join(dir, timesFile))
	require.ErrorContains(t, writeProgress(atomicfile.WriteFrom, dir, progress{}), filepath.Join(dir, progressFile))

	absent := filepath.Join(dir, "absent")
	require.ErrorIs(t, writeTimes(atomicfile.WriteFrom, absent, times{}), os.ErrNotExist)
	require.ErrorContains(t, writeTimes(atomicfile.WriteFrom, dir, times{StartTime: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}), "failed to store the shutdown state: ")
}

func FuzzReadState(f *testing.F) {
	f.Add([]byte(`{"startTime":"2026-09-30T12:00:01Z","endTime":"0001-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"version":1,"bootID":"b","schedule":[{"priority":0,"seconds":-1}],"done":1,"report":{}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		for _, file := range []string{timesFile, progressFile} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), content, 0o600))
		}
		stored, err := readTimes(dir)
		require.True(t, err == nil || stored == times{}, "half a result beside an error")
		p, err := readProgress(dir)
		require.Equal(t, err != nil, p == nil)
		if p != nil {
			require.NoError(t, writeProgress(atomicfile.WriteFrom, dir, *p))
			again, err := readProgress(dir)
			require.NoError(t, err)
			require.Equal(t, len(p.Schedule), len(again.Schedule))
		}
	})
}
