package shutdown_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// filledDuringTheDrain is an agent whose folder has become full after its first pod was
// signalled, and stored, and that has signalled the other one since.
func filledDuringTheDrain(t *testing.T) (a *hostAgent, dir string) {
	t.Helper()
	dir = smallFileSystem(t)
	a = newHostAgent(t, dir)
	a.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Hangs: true}, "etcd": {Hangs: true}}
	a.run()
	a.host.Announce(shutdown.Event{Origin: "former"})
	path := filepath.Join(dir, progressFile)
	require.Eventually(t, func() bool { return fileContains(path, "uid-web") }, 10*time.Second, time.Millisecond)
	fillUp(t, dir)
	a.killer.Release()
	require.Eventually(t, func() bool { return len(a.killer.Kills()) == 2 }, 10*time.Second, time.Millisecond)
	require.Never(t, func() bool { return fileContains(path, "uid-etcd") }, 200*time.Millisecond, 10*time.Millisecond)
	return a, dir
}

// A disk that is full for a part of a drain costs what is written meanwhile, which is said
// once. As soon as there is space again all of the report is stored.
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
	require.True(t, next.m.Admit(nil).Admit)
}

// An agent that is killed while its folder is full is followed by one that goes on from what
// was stored last: until the same end, and no pod has more time than it had.
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
	require.Equal(t, string(stored), string(now), "the file is that of before, and whole")

	next := newHostAgent(t, dir)
	require.False(t, next.m.Admit(nil).Admit)
	next.host.SetPending(&shutdown.Event{})
	next.run()
	report := next.nextReport()
	require.Equal(t, "former", report.Origin)
	for _, kill := range next.killer.Kills() {
		require.LessOrEqual(t, kill.Request.GracePeriodSeconds, int64(2))
	}
	require.Len(t, report.Pods, 2)
}
