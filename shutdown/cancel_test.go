//go:build go1.25

package shutdown_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// A cancellation is heard while pods are killed. No further pod is signalled; the signalled ones
// use their grace period, are in the report, and are refused until they have ended. At once
// admission is open to the others, the node state is reverted, and a new lock replaces the old one.
func TestCancelled(t *testing.T) {
	pods := []*v1.Pod{shutdowntest.Pod("web", 0, 20), shutdowntest.Pod("etcd", topPriority, 5)}
	inBubble(t, pods, func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter = reporter
		n.killer.Default = shutdowntest.Behaviour{Takes: 10 * time.Second}
		n.run()
		began := time.Now()
		n.announce()
		n.advance(3 * time.Second)
		n.host.Cancel()
		synctest.Wait()

		require.True(t, n.m.Admit(pods[1]).Admit)
		require.False(t, n.m.Admit(pods[0]).Admit, "it is ending")
		require.NoError(t, n.m.ShutdownStatus())
		require.Equal(t, 1, n.host.Held())
		require.Equal(t, []string{"delay", "inhibit", "release"}, n.host.Calls()[4:])
		published := announcements(t, reporter)
		require.Len(t, published, 2)
		require.True(t, published[0].State.ShuttingDown)
		require.False(t, published[1].State.ShuttingDown)
		require.Equal(t, []string{
			"Normal Shutdown Shutdown manager detected shutdown event",
			"Normal Shutdown Shutdown manager detected shutdown cancellation",
		}, n.events.all())

		n.advance(time.Minute)
		require.Len(t, n.killer.Kills(), 1, "etcd is not signalled")
		kill, _ := n.killer.Kill("web")
		require.Equal(t, 10*time.Second, kill.Ended.Sub(began), "web runs out its grace")
		require.Equal(t, "web", reporter.Flushed()[0].Pod)
		require.True(t, n.m.Admit(pods[0]).Admit, "it has ended, and the API server knows")
		require.Equal(t, 1, n.host.Held(), "the end of the old drain does not release the new lock")
		report := n.lastReport()
		require.True(t, report.Cancelled)
		require.Equal(t, map[string]string{"web": "Graceful"}, outcomes(report))
	})
}

// The next shutdown waits for a pod that a cancelled one has signalled, also if no list has the pod any
// more.
func TestNextShutdownAwaitsAnUnlistedPodOfACancelledOne(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 20)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 15 * time.Second}
		n.run()
		began := time.Now()
		n.announce()
		n.advance(3 * time.Second)
		n.host.Cancel()
		n.setPods()
		n.advance(time.Second)
		n.announce()
		n.advance(25 * time.Second)
		require.Equal(t, 15*time.Second, n.releasedAfter(began))
		require.Equal(t, map[string]string{"web": "Graceful"}, outcomes(n.lastReport()))
		require.True(t, n.lastReport().Pods[0].Joined)
		require.Len(t, n.killer.Kills(), 1)
	})
}

// Pods that a cancelled shutdown has signalled are awaited beyond the time that the host would have
// waited: one that uses all of a grace that ends with the host's limit, and one that hangs. Their
// ends are reported and told, and they are admitted then.
func TestCancelledShutdownAwaitsItsPods(t *testing.T) {
	pods := []*v1.Pod{shutdowntest.Pod("web", 0, 20), shutdowntest.Pod("stuck", 0, 20), shutdowntest.Pod("etcd", topPriority, 10)}
	inBubble(t, pods, func(t *testing.T, n *node) {
		c := &cluster{}
		n.opts.Reporter = c
		reports := make(chan shutdown.Report, 9)
		n.opts.OnReport = func(_ context.Context, r shutdown.Report) { reports <- r }
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.killer.Pods = map[string]shutdowntest.Behaviour{"stuck": {Hangs: true}}
		n.run()
		began := time.Now()
		n.host.Announce(shutdown.Event{Deadline: began.Add(30 * time.Second)})
		n.advance(25 * time.Second)
		n.host.Cancel()
		n.advance(6 * time.Second)
		require.Equal(t, []string{"etcd", "web"}, c.flushedPods())
		require.True(t, n.m.Admit(pods[2]).Admit)
		require.False(t, n.m.Admit(pods[1]).Admit, "it may still run")
		require.Empty(t, reports)
		n.advance(time.Minute)
		n.killer.Release()
		n.advance(time.Second)
		require.True(t, n.m.Admit(pods[1]).Admit)
		require.Len(t, reports, 1)
		for i, end := range []time.Duration{20 * time.Second, 91 * time.Second, 30 * time.Second} {
			require.Equal(t, end, n.lastReport().Pods[i].Ended.Sub(began))
		}
		require.Zero(t, n.m.UnendedKills())
	})
}

// A cancelled shutdown does not wait for the volumes of pods that it has killed, because the node
// goes on with them.
func TestCancelledShutdownDoesNotUnmount(t *testing.T) {
	for cancels, want := range map[bool]int{false: 1, true: 0} {
		inBubble(t, []*v1.Pod{shutdowntest.Pod("web", 0, 20)}, func(t *testing.T, n *node) {
			unmounts := make(chan struct{}, 9)
			n.opts.Volumes = volumes(func(context.Context, []*v1.Pod) error { unmounts <- struct{}{}; return nil })
			n.killer.Default = shutdowntest.Behaviour{Takes: 10 * time.Second}
			n.run()
			n.announce()
			n.advance(time.Second)
			if cancels {
				n.host.Cancel()
			}
			n.advance(time.Minute)
			require.Len(t, unmounts, want)
		})
	}
}

// A shutdown that is cancelled after its drain re-takes the lock as well.
func TestCancelledAfterTheDrain(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		n.run()
		n.announce()
		require.Zero(t, n.host.Held())
		n.host.Cancel()
		synctest.Wait()
		require.Equal(t, 1, n.host.Held())
		require.NoError(t, n.m.ShutdownStatus())
	})
}

// A host announces a shutdown, cancels it and announces another one, which is delayed again. It waits for pods that are still
// ending, and signals them again only if that leaves them less time. Its report says that they
// have joined it.
func TestShutdownAgain(t *testing.T) {
	pods := []*v1.Pod{shutdowntest.Pod("long", 0, 18), shutdowntest.Pod("short", 0, 6), shutdowntest.Pod("etcd", topPriority, 5)}
	inBubble(t, pods, func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.killer.Pods = map[string]shutdowntest.Behaviour{"etcd": {Takes: time.Second}}
		n.run()
		began := time.Now()
		n.announce()
		n.advance(2 * time.Second)
		n.host.Cancel()
		n.advance(time.Second)
		require.Equal(t, 1, n.host.Held(), "held before the second shutdown")
		n.host.Announce(shutdown.Event{Deadline: time.Now().Add(14 * time.Second)}) // 9 s and 5 s
		n.advance(time.Minute)

		granted := []int64{}
		for _, kill := range n.killer.Kills() {
			if kill.Pod.Name == "long" {
				granted = append(granted, *kill.Request.GracePeriodSeconds)
			}
		}
		require.Equal(t, []int64{18, 9}, granted, "shortened")
		kill, _ := n.killer.Kill("short")
		require.Equal(t, began, kill.Started, "not signalled again")
		require.Equal(t, 12*time.Second, n.killedAfter("etcd", began))
		require.Equal(t, 13*time.Second, n.releasedAfter(began))
		report := n.lastReport()
		require.False(t, report.Cancelled)
		require.Equal(t, map[string]string{"long": "GraceExceeded", "short": "GraceExceeded", "etcd": "Graceful"}, outcomes(report))
		for _, pod := range report.Pods {
			require.Equal(t, pod.Name != "etcd", pod.Joined, pod.Name)
		}
	})
}

// A second true is the same shutdown, unless it leaves less time.
func TestAnnouncedTwice(t *testing.T) {
	pods := []*v1.Pod{shutdowntest.Pod("web", 0, 20), shutdowntest.Pod("etcd", topPriority, 10)}
	for _, test := range []struct {
		name     string
		second   time.Duration // after a second; 0: not known
		kills    int
		released time.Duration
	}{
		{"the same", 0, 2, 30 * time.Second},
		{"later", time.Hour, 2, 30 * time.Second},
		{"earlier", 15 * time.Second, 3, 15500 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, pods, func(t *testing.T, n *node) {
				n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
				n.run()
				began := time.Now()
				n.announce()
				n.advance(time.Second)
				event := shutdown.Event{}
				if test.second != 0 {
					event.Deadline = time.Now().Add(test.second)
				}
				n.host.Announce(event)
				n.advance(time.Minute)
				require.Len(t, n.killer.Kills(), test.kills)
				require.Equal(t, test.released, n.releasedAfter(began))
				require.Len(t, n.events.all(), 1, "detected once")
				require.False(t, n.lastReport().Cancelled)
			})
		})
	}
}

// The host can cancel only its own shutdown. One that was triggered goes on until it is cancelled
// with Trigger.
func TestCancelledByWhom(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		n.run()
		require.NoError(t, n.m.Trigger(shutdown.Event{Origin: "operator"}))
		n.host.Cancel()
		synctest.Wait()
		require.Error(t, n.m.ShutdownStatus())
		require.NoError(t, n.m.Trigger(shutdown.Event{Cancelled: true}))
		require.NoError(t, n.m.ShutdownStatus())
		synctest.Wait()
		require.Equal(t, 1, n.host.Held())

		n.host.Cancel() // of nothing
		synctest.Wait()
		require.Equal(t, 1, n.host.Held())
	})
}

// A host does not wait for a triggered shutdown, so its report does not complain that the host did
// not wait. This holds too after a shutdown that the host had announced and that was cancelled.
func TestTriggeredAfterTheHostsShutdown(t *testing.T) {
	for name, cancel := range map[string]func(n *node){
		"the host cancelled":     func(n *node) { n.host.Cancel() },
		"the embedder cancelled": func(n *node) { require.NoError(n.t, n.m.Trigger(shutdown.Event{Cancelled: true})) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, twoPods(), func(t *testing.T, n *node) {
				n.host.InhibitErr = errors.New("refused")
				n.killer.Default = shutdowntest.Behaviour{Takes: time.Second}
				n.run()
				n.announce()
				n.advance(500 * time.Millisecond)
				cancel(n)
				n.advance(time.Minute)
				require.NoError(t, n.m.Trigger(shutdown.Event{}))
				n.advance(time.Minute)
				require.NotZero(t, n.lastReport().Ended)
				require.Empty(t, n.lastReport().Errors)
			})
		})
	}
}

// Trigger may name the origin of the host: what the host has announced is dismissed, with the lock
// kept until the end of the host's time, since the host has it pending all the same.
func TestTriggerCancelsTheOriginOfTheHost(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.run()
		n.host.Script(func(h *shutdowntest.Host) { h.InhibitErr = shutdowntest.ErrInProgress })
		began := time.Now()
		n.host.Announce(shutdown.Event{Origin: "host", Deadline: began.Add(40 * time.Second)})
		n.advance(time.Second)
		require.NoError(t, n.m.Trigger(shutdown.Event{Cancelled: true, Origin: "host"}))
		n.advance(time.Second)
		require.True(t, n.m.Admit(nil).Admit)
		require.Equal(t, 1, n.host.Held())
		n.advance(time.Minute)
		require.LessOrEqual(t, n.releasedAfter(began), 40*time.Second)
	})
}

// What is announced after the time of a dismissed shutdown is over has all of its own time.
func TestAnnouncedAfterADismissedShutdownIsOver(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.run()
		n.host.Announce(shutdown.Event{Deadline: time.Now().Add(time.Minute)})
		synctest.Wait()
		require.NoError(t, n.m.Trigger(shutdown.Event{Cancelled: true}))
		n.advance(2 * time.Minute)
		n.setPods(shutdowntest.Pod("late", 0, 60))
		require.NoError(t, n.m.Trigger(shutdown.Event{Origin: "notice"}))
		n.advance(time.Second)
		require.EqualValues(t, 20, n.grantedSeconds()["late"])
	})
}

// The lock of a dismissed shutdown was let go at the end of the host's time. A new shutdown takes one, if
// one is to be had.
func TestAnnouncedAfterTheLockOfADismissedShutdownWasLetGo(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.run()
		n.announce()
		require.NoError(t, n.m.Trigger(shutdown.Event{Cancelled: true}))
		n.advance(time.Minute)
		require.Zero(t, n.host.Held())
		n.host.SetPending(nil)
		began := time.Now()
		require.NoError(t, n.m.Trigger(shutdown.Event{Origin: "notice", Deadline: began.Add(30 * time.Second)}))
		n.advance(time.Second)
		require.Equal(t, 1, n.host.Held())
		n.advance(time.Minute)
		require.LessOrEqual(t, n.releasedAfter(began), 30*time.Second)
	})
}
