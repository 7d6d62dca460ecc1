package statelog_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/internal/statelog"
)

// If a shutdown or pod has several entries, the next agent reads the last one. The pods are in the order of their first
// entries.
func TestTheLastEntryOfEachEntityCounts(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, options(dir))
	require.Equal(t, statelog.Contents{}, contentsOf(t, l))
	l.Begin(entries(shutdown(1), pod("a"), pod("b")))
	l.Append(entriesOfPods(signalled("b")))
	second := shutdown(1)
	second.DoneBuckets = 1
	l.Append(entries(second, ended("a")))
	times := statelog.Times{StartTime: at(1), EndTime: at(2)}
	l.SaveTimes(times)
	requireWritten(t, l.Sync())
	closeLog(t, l)
	want := statelog.Contents{Entries: entries(second, ended("a"), signalled("b")), SameBoot: true, Times: times}
	require.Equal(t, want, nextAgentReads(t, dir))
	found, err := statelog.ReadFile(dir)
	require.NoError(t, err)
	require.Equal(t, want.Entries, found.Entries)
}

// Other users cannot read the log, because preStop hooks may have secrets.
func TestTheLogIsPrivate(t *testing.T) {
	dir := t.TempDir()
	writeLog(t, dir, entries(shutdown(1)))
	info, err := os.Stat(logPath(dir))
	require.NoError(t, err)
	require.Equal(t, "-rw-------", info.Mode().String())
}

// The agent has died while it wrote the last line, of which 3 bytes are missing. The next agent ignores this line, and
// its first write removes it, so that the lines after it can be read.
func TestAppendRemovesAnIncompleteLastLine(t *testing.T) {
	dir := t.TempDir()
	writeLog(t, dir, entries(shutdown(1), signalled("a")), entriesOfPods(ended("a")))
	require.NoError(t, os.Truncate(logPath(dir), int64(len(logText(t, dir))-3)))

	l := openLog(t, options(dir))
	require.Equal(t, entries(shutdown(1), signalled("a")), contentsOf(t, l).Entries)
	requireWritten(t, l.Append(entriesOfPods(pod("b"))))
	requireWritten(t, l.Append(entriesOfPods(signalled("b"))))
	closeLog(t, l)
	require.Equal(t, statelog.Contents{Entries: entries(shutdown(1), signalled("a"), signalled("b")), SameBoot: true}, nextAgentReads(t, dir))
}

// A log has a damaged third entry, in line 4. The entries before it are read, the error names the line, and the next write
// removes that line and all that follow.
func TestLinesBeforeADamagedOneCount(t *testing.T) {
	for name, damage := range map[string]string{
		"not JSON":      "{\"pod\":\n",
		"another type":  "{\"pod\":{\"grantedSeconds\":\"x\"}}\n",
		"no entity":     "{}\n",
		"an empty line": "\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeLog(t, dir, entries(shutdown(1), signalled("a")), entriesOfPods(ended("a")))
			lines := strings.SplitAfter(string(logText(t, dir)), "\n")
			lines[2] += damage // after the header, the shutdown and the pod; the line of the pod's end follows
			require.NoError(t, os.WriteFile(logPath(dir), []byte(strings.Join(lines, "")), 0o600))

			l := openLog(t, options(dir))
			found := contentsOf(t, l)
			require.Equal(t, entries(shutdown(1), signalled("a")), found.Entries)
			require.Len(t, found.Errs, 1)
			require.ErrorContains(t, found.Errs[0], logPath(dir)+" is not usable: line 4 and all that follow are ignored: ")
			requireWritten(t, l.Append(entriesOfPods(pod("b"))))
			closeLog(t, l)
			require.Equal(t, statelog.Contents{Entries: entries(shutdown(1), signalled("a"), pod("b")), SameBoot: true}, nextAgentReads(t, dir))
		})
	}
}

// A log that is invalid, or has another version, is not used. An error says what is wrong, and the next write replaces
// the log.
func TestUnknownLogsAreReplaced(t *testing.T) {
	for text, named := range map[string]string{
		"":                                     "invalid first line: unexpected end of JSON input",
		"\x00\x00\x00\x00\n":                   "invalid first line: ",
		"{\"version\":2,\"bootID\":\"one\"}\n": "version 2 is not known, only 1",
		"{\"bootID\":\"one\"}\n":               "version 0 is not known, only 1",
		"null":                                 "version 0 is not known, only 1",
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(logPath(dir), []byte(text), 0o600))
		l := openLog(t, options(dir))
		found := contentsOf(t, l)
		require.Zero(t, found.Entries)
		require.Len(t, found.Errs, 1)
		require.ErrorContains(t, found.Errs[0], named)
		requireWritten(t, l.Append(entriesOfPods(pod("a"))))
		closeLog(t, l)
		require.Equal(t, statelog.Contents{Entries: entriesOfPods(pod("a")), SameBoot: true}, nextAgentReads(t, dir))
	}
}

// The boot "one" has written a log with times of an hour after its boot. An agent reads it a minute after the boot "two": the
// entries are read as another boot's, although their times are later than now. Begin replaces the log by one of the boot "two",
// which an agent of the boot "one" reads as another boot's.
func TestBeginReplacesTheLogOfAnotherBoot(t *testing.T) {
	dir := t.TempDir()
	writeLog(t, dir, entries(shutdown(1), signalled("a")))

	next := options(dir)
	next.Boot = nextBoot
	l := openLog(t, next)
	require.Equal(t, statelog.Contents{Entries: entries(shutdown(1), signalled("a"))}, contentsOf(t, l), "SameBoot is false")

	over := signalled("a")
	over.Ended = at(time.Minute)
	requireWritten(t, l.Begin(entriesOfPods(over)))
	closeLog(t, l)
	require.Equal(t, statelog.Contents{Entries: entriesOfPods(over), SameBoot: true}, contentsOf(t, statelog.New(next)), "for an agent of the boot two")
	require.Equal(t, statelog.Contents{Entries: entriesOfPods(over)}, nextAgentReads(t, dir), "for an agent of the boot one")
}

// An earlier agent has stored a shutdown. The next one cannot read the boot ID: it reads no entries, and its writes succeed but
// leave the log as it was. It still writes and reads the kubelet's file with the times of the last shutdown.
func TestNothingIsStoredWithoutABootID(t *testing.T) {
	dir := t.TempDir()
	writeLog(t, dir, entries(shutdown(1)))
	before := logText(t, dir)

	o := options(dir)
	o.Boot = func() (string, time.Duration, error) { return "", 0, os.ErrPermission }
	l := openLog(t, o)
	require.ErrorIs(t, l.BootErr(), os.ErrPermission)
	require.Zero(t, contentsOf(t, l).Entries)
	requireWritten(t, l.Begin(entriesOfPods(pod("a"))))
	requireWritten(t, l.Sync())
	times := statelog.Times{StartTime: at(1)}
	requireWritten(t, l.SaveTimes(times))
	closeLog(t, l)
	require.Equal(t, before, logText(t, dir))
	require.Equal(t, statelog.Contents{Times: times}, contentsOf(t, statelog.New(o)))
}

// Without a folder no file is read or written, and every call succeeds, even after Close. Times are still converted to times
// since the boot, which was an hour ago by Options.Boot.
func TestNothingIsStoredWithoutAFolder(t *testing.T) {
	o := options("")
	o.Before = func(step, path string) error { t.Errorf("%s of %s", step, path); return nil } // called before each disk operation
	l := openLog(t, o)
	for _, future := range []*call.Future[struct{}]{l.Append(entriesOfPods(pod("a"))), l.Begin(node.Entries{}), l.Sync(), l.SaveTimes(statelog.Times{})} {
		requireWritten(t, future)
	}
	require.Equal(t, statelog.Contents{}, contentsOf(t, l))
	require.False(t, l.SinceBoot(time.Now()).Before(at(time.Hour)), "the boot was an hour ago")
	closeLog(t, l)
	requireWritten(t, l.Append(entriesOfPods(pod("a"))))
}

// appendChanges appends 100 changes of the pod a, and returns its last state.
func appendChanges(t *testing.T, l *statelog.Log) *node.Pod {
	t.Helper()
	changed := signalled("a")
	for ms := range 100 {
		changed.Deadline = at(time.Hour + time.Duration(ms)*time.Millisecond)
		requireWritten(t, l.Append(entries(shutdown(1), changed)))
	}
	return changed
}

// Each change of a pod adds a line to the log, but the pod's object is written only once. A changed object is written again.
func TestAnObjectIsWrittenOnce(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, options(dir))
	appendChanges(t, l)
	require.Equal(t, 1, strings.Count(string(logText(t, dir)), `"uid":"uid-a"`))
	later := signalled("a")
	later.Object.Status.Phase = "Succeeded"
	requireWritten(t, l.Append(entriesOfPods(later)))
	closeLog(t, l)
	require.Equal(t, entries(shutdown(1), later), nextAgentReads(t, dir).Entries)
}

// The log has grown by 100 changes of a pod. Begin replaces it by its own entries, so that the log is less than a fiftieth as
// long, and no longer has the pod b.
func TestBeginReplacesTheLog(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, options(dir))
	last := appendChanges(t, l)
	requireWritten(t, l.Append(entriesOfPods(pod("b"))))
	lengthBefore := len(logText(t, dir))
	requireWritten(t, l.Begin(entries(shutdown(2), last)))
	require.Less(t, len(logText(t, dir)), lengthBefore/50)
	closeLog(t, l)
	require.Equal(t, entries(shutdown(2), last), nextAgentReads(t, dir).Entries)
}

// While the disk writes the first entries, four changes of two pods come. They are written together: the newest entry of
// each pod.
func TestWaitingEntriesAreWrittenTogether(t *testing.T) {
	o := options(t.TempDir())
	writes, firstBegan, finishFirst := 0, make(chan struct{}), make(chan struct{})
	o.Before = func(step, _ string) error {
		if step == "write" {
			if writes++; writes == 1 {
				close(firstBegan)
				<-finishFirst
			}
		}
		return nil
	}
	l := openLog(t, o)
	first := l.Append(entries(shutdown(1), pod("a")))
	<-firstBegan
	var later []*call.Future[struct{}]
	for _, p := range []*node.Pod{pod("b"), signalled("a"), signalled("b"), ended("b")} {
		later = append(later, l.Append(entriesOfPods(p)))
	}
	close(finishFirst)
	for _, future := range append(later, first) {
		requireWritten(t, future)
	}
	closeLog(t, l)
	require.LessOrEqual(t, writes, 2, "the first entries, and all that came during that write")
	require.LessOrEqual(t, strings.Count(string(logText(t, o.Dir)), `"uid-b"`), 2, "its entry and its object")
	require.Equal(t, entries(shutdown(1), signalled("a"), ended("b")), nextAgentReads(t, o.Dir).Entries)
}

// A time in the year 20000 cannot be encoded as JSON, because a year has four digits there. So a shutdown that began then
// cannot be stored, and neither can a pod that ended then. Append returns an error for them, and writes the other entries.
func TestUnencodableEntriesAreErrors(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, options(dir))
	strange := shutdown(2)
	strange.BeganWallTime = time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)
	err := await(t, l.Append(entries(strange, pod("a"))))
	require.ErrorContains(t, err, "failed to store the shutdown state in "+logPath(dir)+": ")
	require.ErrorContains(t, err, "year")
	late := signalled("c")
	late.Ended = strange.BeganWallTime
	require.ErrorContains(t, await(t, l.Append(entriesOfPods(late))), "year")
	closeLog(t, l)
	require.Equal(t, entriesOfPods(pod("a")), nextAgentReads(t, dir).Entries)
}

// A closed log accepts no entry.
func TestAClosedLogAcceptsNothing(t *testing.T) {
	l := openLog(t, options(t.TempDir()))
	closeLog(t, l)
	require.ErrorContains(t, await(t, l.Append(entriesOfPods(pod("b")))), "the state log is closed")
	require.ErrorContains(t, await(t, l.SaveTimes(statelog.Times{})), "the state log is closed")
}

// The caller may change entries, and their slices, after it has passed them to Append: the log has what was passed.
func TestAppendCopiesItsEntries(t *testing.T) {
	dir := t.TempDir()
	l := statelog.New(options(dir))
	s, p := shutdown(1), ended("a")
	s.Errors, p.StillRanIn = []string{"failed"}, []int{2}
	written := l.Append(entries(s, p))
	s.Errors[0], s.Announced[0].Origin, s.DoneBuckets, p.StillRanIn[0], p.StatusAccepted = "", "", 1, 0, true // the caller changes what it has passed
	_, err := l.Lock(t.Context())
	require.NoError(t, err)
	requireWritten(t, written)
	closeLog(t, l)
	s, p = shutdown(1), ended("a") // as they were
	s.Errors, p.StillRanIn = []string{"failed"}, []int{2}
	require.Equal(t, entries(s, p), nextAgentReads(t, dir).Entries)
}

// The kubelet's file lacks a time, or is no JSON: it is not used, and the error has its path.
func TestTimesNeedStartAndEnd(t *testing.T) {
	for text, named := range map[string]string{
		`{"startTime":"2026-09-30T12:00:00Z"}`: "it needs both startTime and endTime",
		`{"startTime":"`:                       "unexpected end of JSON input",
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, timesFile), []byte(text), 0o600))
		found := nextAgentReads(t, dir)
		require.Len(t, found.Errs, 1)
		require.EqualError(t, found.Errs[0], "shutdown state "+filepath.Join(dir, timesFile)+" is not usable: "+named)
	}
}

// Without Options.Times the log neither reads the kubelet's file nor changes it.
func TestWithoutTimesTheKubeletsFileIsNotTouched(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, timesFile)
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	without := options(dir)
	without.Times = false
	l := openLog(t, without)
	require.Equal(t, statelog.Contents{}, contentsOf(t, l), "no error: the file was not read")
	requireWritten(t, l.SaveTimes(statelog.Times{}))
	closeLog(t, l)
	left, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "{", string(left))
}
