//go:build go1.25

package shutdown_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// Trigger takes back all announcements, one after the other, while the host has the shutdown pending. In
// any order the shutdown is dismissed then: it does not come back with the next session, and the lock is
// kept until the end of the time that the drain had.
func TestTriggerCancelsOneOriginAfterTheOther(t *testing.T) {
	for name, origins := range map[string][]string{
		"the host's last":         {"notice", "host"},
		"the host's first":        {"host", "notice"},
		"the host's, and the all": {"host", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, twoPods(), func(t *testing.T, n *node) {
				n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
				n.run()
				began := time.Now()
				n.host.Announce(shutdown.Event{Origin: "host"})
				require.NoError(t, n.m.Trigger(shutdown.Event{Origin: "notice"}))
				n.advance(time.Second)
				for _, origin := range origins {
					require.NoError(t, n.m.Trigger(shutdown.Event{Cancelled: true, Origin: origin}))
				}
				n.host.Lose()
				n.advance(5 * time.Second)
				require.True(t, n.m.Admit(nil).Admit)
				require.Len(t, n.killer.Kills(), 1)
				require.Equal(t, 1, n.host.Held())
				n.advance(time.Minute)
				require.Equal(t, 32*time.Second, n.releasedAfter(began))
			})
		})
	}
}

// The host cancels what Trigger has taken back before: then it has nothing pending.
func TestTheHostCancelsWhatTriggerHasTakenBack(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.run()
		n.host.Announce(shutdown.Event{Origin: "host"})
		require.NoError(t, n.m.Trigger(shutdown.Event{Origin: "notice"}))
		require.NoError(t, n.m.Trigger(shutdown.Event{Cancelled: true, Origin: "host"}))
		n.host.Cancel()
		n.advance(time.Second)
		require.False(t, n.m.Admit(nil).Admit, "the notice stands")
		require.NoError(t, n.m.Trigger(shutdown.Event{Cancelled: true, Origin: "notice"}))
		n.advance(time.Second)
		require.True(t, n.m.Admit(nil).Admit)
		n.host.SetPending(&shutdown.Event{})
		n.host.Lose()
		n.advance(5 * time.Second)
		require.False(t, n.m.Admit(nil).Admit, "it is another shutdown")
	})
}

// TerminateAll waits for a shutdown that is cancelled then, while a pod of it never ends. The rest of the
// pods is drained all the same, and the error names the one that is left.
func TestTerminateAllAndAPodOfACancelledShutdownThatHangs(t *testing.T) {
	for name, cancel := range map[string]func(n *node){
		"by the host": func(n *node) { n.host.Cancel() },
		"by Trigger":  func(n *node) { require.NoError(n.t, n.m.Trigger(shutdown.Event{Cancelled: true})) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, twoPods(), func(t *testing.T, n *node) {
				n.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Hangs: true}}
				n.run()
				n.announce()
				began := time.Now()
				time.AfterFunc(time.Second, func() { cancel(n) })
				report, err := n.m.TerminateAll(t.Context())
				require.EqualError(t, err, "pod default/web: it is not known to have ended")
				require.Equal(t, "TerminateAll", report.Origin)
				require.Equal(t, []string{"web", "etcd"}, names(report))
				require.LessOrEqual(t, n.killedAfter("etcd", began), 25*time.Second)
			})
		})
	}
}

// The manager does not keep a drain that has ended, whether its shutdown goes on, was cancelled
// before the end of the drain, or is cancelled after it.
func TestEndedDrainsAreNotKept(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 3 * time.Second}
		n.run()
		for i := range 10 {
			n.announce()
			n.advance(time.Duration(i) * time.Second)
			n.host.Cancel()
			synctest.Wait()
		}
		n.advance(time.Minute)
		require.Zero(t, n.m.UnendedKills())
	})
}
