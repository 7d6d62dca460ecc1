//go:build go1.25

package shutdown_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// notify announces a termination notice through Trigger, or withdraws it if deadline is zero.
func (n *node) notify(deadline time.Time) {
	n.t.Helper()
	require.NoError(n.t, n.m.Trigger(source.Event{Origin: "EC2 instance-action", Deadline: deadline, Cancelled: deadline.IsZero()}))
}

// killsSince lists the kills: the pod, the time and the grace period of each.
func (n *node) killsSince(began time.Time) (all []string) {
	for _, kill := range n.killer.Kills() {
		all = append(all, fmt.Sprintf("%s %v: %d s", kill.Pod.Name, kill.Started.Sub(began), *kill.Request.GracePeriodSeconds))
	}
	return all
}

// A termination notice and the host announce the same shutdown 10 s apart, each with a deadline. The earlier
// deadline, 27 s, counts once it is known: the buckets share it from then on, and the lock is released 100 ms
// before it. There is one report.
func TestATerminationNoticeAndTheHostAreOneShutdown(t *testing.T) {
	for name, test := range map[string]struct {
		notice, logind time.Duration // the deadlines
		isNoticeFirst  bool          // by 10 s
		kills          []string
	}{
		"a notice, then the host with less time": {120 * time.Second, 27 * time.Second, true, []string{"web 0s: 20 s", "etcd 20s: 7 s"}},
		"the host, then a notice with more time": {120 * time.Second, 27 * time.Second, false, []string{"web 0s: 18 s", "etcd 18s: 9 s"}},
		"the host, then a notice with less time": {27 * time.Second, 120 * time.Second, false, []string{"web 0s: 20 s", "etcd 20s: 7 s"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, twoPods(), func(t *testing.T, n *node) {
				told := countReports(t, n)
				n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
				n.run()
				began := time.Now()
				announce := func(isNotice bool) {
					if isNotice {
						n.notify(began.Add(test.notice))
					} else {
						n.host.Announce(source.Event{Origin: "logind", Kind: source.KindPoweroff, Deadline: began.Add(test.logind)})
					}
					n.advance(10 * time.Second)
				}
				announce(test.isNoticeFirst)
				announce(!test.isNoticeFirst)
				n.advance(3 * time.Minute)
				require.Equal(t, test.kills, n.killsSince(began))
				require.Equal(t, 26900*time.Millisecond, n.releasedAfter(began))
				require.Len(t, told.reports, 1)
				report := <-told.reports
				require.Equal(t, []string{"web", "etcd"}, names(report))
				require.Equal(t, "logind", report.Origin, "the host's origin takes precedence")
				require.True(t, report.Started.Equal(began))
				require.Equal(t, 2.0, told.podsCounted(t))
			})
		})
	}
}

// The notice and the host withdraw their announcements in either order. The drain continues until both
// have.
func TestAShutdownEndsWhenAllAnnouncersHaveWithdrawnIt(t *testing.T) {
	takeBack := map[string]func(n *node){
		"logind": func(n *node) { n.host.Cancel() },
		"notice": func(n *node) { n.notify(time.Time{}) },
	}
	for first, then := range map[string]string{"logind": "notice", "notice": "logind"} {
		t.Run(first+" first", func(t *testing.T) {
			inBubble(t, twoPods(), func(t *testing.T, n *node) {
				told := countReports(t, n)
				n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
				n.run()
				n.notify(time.Now().Add(2 * time.Minute))
				n.host.Announce(source.Event{Origin: "logind", Deadline: time.Now().Add(time.Minute)})
				n.advance(2 * time.Second)
				takeBack[first](n)
				n.advance(2 * time.Second)
				require.Error(t, n.m.ShutdownStatus())
				takeBack[then](n)
				n.advance(time.Minute)
				require.NoError(t, n.m.ShutdownStatus())
				require.Equal(t, 1, n.host.Held())
				require.Len(t, told.reports, 1)
				require.True(t, (<-told.reports).Cancelled)
				require.Len(t, n.killer.Kills(), 1, "etcd was not signalled")
				n.notify(time.Now().Add(2 * time.Minute))
				require.Error(t, n.m.ShutdownStatus(), "a new notice is a new shutdown")
			})
		})
	}
}

// An agent is killed 8 s after a notice, and its successor gets the notice again. That does not begin another
// shutdown: the buckets end at 20 s and 30 s, as planned.
func TestANoticeIsRepeatedAfterARestart(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		began := time.Now()
		end := began.Add(2 * time.Minute)
		n.notify(end)
		n.advance(8 * time.Second)
		n.crash()
		told := countReports(t, n)
		n.runOnBoot(one)
		n.notify(end)
		n.advance(time.Minute)
		require.Equal(t, []string{"web 8s: 12 s", "etcd 20s: 10 s"}, n.killsSince(began))
		require.Equal(t, 30*time.Second, n.releasedAfter(began))
		require.Len(t, told.reports, 1)
		require.Equal(t, []string{"web", "etcd"}, names(<-told.reports))
	})
}
