package shutdown_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// filledDuringTheDrain returns an agent whose folder has become full during a drain: the kill of
// the first pod is stored, that of the second one is not.
func filledDuringTheDrain(t *testing.T) (a *hostAgent, dir string) {
	t.Helper()
	dir = smallFileSystem(t)
	a = newHostAgent(t, dir)
	a.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Hangs: true}, "etcd": {Hangs: true}}
	a.run()
	a.host.Announce(shutdown.Event{Origin: "former"})
	path, signalled := filepath.Join(dir, progressFile), `"signalled":true`
	require.Eventually(t, func() bool { return fileContains(path, signalled) }, 10*time.Second, time.Millisecond)
	require.True(t, fileContains(path, "uid-etcd"), "it is to be killed")
	fillUp(t, dir)
	a.killer.Release()
	require.Eventually(t, func() bool { return len(a.killer.Kills()) == 2 }, 10*time.Second, time.Millisecond)
	require.Never(t, func() bool { return fileCount(t, path, signalled) > 1 }, 200*time.Millisecond, 10*time.Millisecond)
	return a, dir
}

// fileCount returns how often a file contains a text.
func fileCount(t *testing.T, path, text string) int {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return strings.Count(string(data), text)
}

// What happens while the disk is full is stored as soon as there is space again. The report says
// once that it could not be written.
func TestFolderThatIsFullForAWhile(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	a, dir := filledDuringTheDrain(t)
	require.NoError(t, os.Remove(filepath.Join(dir, "other")))
	a.killer.Release()
	report := a.nextReport()
	require.Len(t, report.Pods, 2)
	require.Len(t, report.Errors, 1)
	require.Contains(t, report.Errors[0], "no space left on device")
	a.log.requireErrors(t, 1, report.Errors)
	require.NoError(t, a.end())
	requireNoLeftovers(t, dir)

	stored, ok, err := shutdown.StoredReport(dir)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, asJSON(t, report), asJSON(t, stored), "with both pods, its end, and the error")
	next := newHostAgent(t, dir)
	require.False(t, next.m.Admit(nil).Admit, "the host was let go a moment ago")
	next.run()
	require.Eventually(t, func() bool { return next.m.Admit(nil).Admit }, 10*time.Second, time.Millisecond, "it says that nothing is pending")
	require.Empty(t, next.killer.Kills())
}

// If an agent is killed while its folder is full, the next agent resumes from the last state
// file: the shutdown keeps its end, and no pod is granted more time.
func TestKilledWhileItsFolderIsFull(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	a, dir := filledDuringTheDrain(t)
	stored, err := os.ReadFile(filepath.Join(dir, progressFile))
	require.NoError(t, err)
	require.NoError(t, a.end())
	now, err := os.ReadFile(filepath.Join(dir, progressFile))
	require.NoError(t, err)
	require.Equal(t, string(stored), string(now), "the file has not changed")

	next := newHostAgent(t, dir)
	require.False(t, next.m.Admit(nil).Admit)
	next.host.SetPending(&shutdown.Event{})
	next.run()
	report := next.nextReport()
	require.Equal(t, "former", report.Origin)
	for _, kill := range next.killer.Kills() {
		require.LessOrEqual(t, *kill.Request.GracePeriodSeconds, int64(3), "its bucket's and what the one before it left")
	}
	require.Len(t, report.Pods, 2)
}
