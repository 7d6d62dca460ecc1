//go:build go1.25

package shutdown_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// volumes is a VolumeWaiter.
type volumes func(ctx context.Context, pods []*v1.Pod) error

func (v volumes) WaitForAllPodsUnmount(ctx context.Context, pods []*v1.Pod) error {
	return v(ctx, pods)
}

// Volumes and final statuses have reserves of their own, even if pods use all of their grace
// period. Pods of the next bucket are not signalled before.
func TestReserves(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("etcd", topPriority, 5)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		began := time.Now()
		var unmountFrom, unmountUntil []time.Duration
		n.opts.Volumes = volumes(func(ctx context.Context, _ []*v1.Pod) error {
			deadline, _ := ctx.Deadline()
			unmountFrom, unmountUntil = append(unmountFrom, time.Since(began)), append(unmountUntil, deadline.Sub(began))
			<-ctx.Done()
			return context.Cause(ctx)
		})
		reporter := &shutdowntest.Reporter{FlushTakes: time.Hour}
		n.opts.Reporter = reporter
		n.opts.Plan.UnmountReserve, n.opts.Plan.FlushReserve = 3*time.Second, 2*time.Second
		n.run()
		n.announce()
		n.advance(time.Minute)

		require.Equal(t, map[string]int64{"web": 20, "etcd": 5}, n.grantedSeconds(), "nothing is taken from the pods")
		require.Equal(t, []time.Duration{20 * time.Second, 30500 * time.Millisecond}, unmountFrom)
		require.Equal(t, []time.Duration{23 * time.Second, 38500 * time.Millisecond}, unmountUntil, "the 5 s that etcd leaves are there for its volumes")
		require.Equal(t, 25500*time.Millisecond, n.killedAfter("etcd", began), "2.5 s without an answer")
		require.Equal(t, 42100*time.Millisecond, n.releasedAfter(began), "flushed or not: the mark of etcd was answered, so three more calls are worth their time")
		report := n.lastReport()
		require.True(t, report.Pods[0].Unflushed)
		require.True(t, report.Pods[1].Unflushed)
		require.Len(t, report.Errors, 3)
		require.Contains(t, report.Errors[0], "Failed while waiting for all the volumes")
		require.Contains(t, report.Errors[1], "Failed while waiting for all the volumes")
		require.Contains(t, report.Errors[2], "failed to flush the final statuses of 2 pods")
	})
}

// The host is released after the statuses are accepted, and a bucket ends after its own are. The
// drain waits for a pod that is refused for ever as long as the server answers, and names it at
// the end.
func TestFlushThenRelease(t *testing.T) {
	pods := list(shutdowntest.Pod("web", 0, 5), shutdowntest.Pod("api", 0, 5), shutdowntest.Pod("etcd", topPriority, 5))
	inBubble(t, pods, func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{FlushTakes: 400 * time.Millisecond}
		n.opts.Reporter = refusingReporter{reporter, "api"}
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, "web", reporter.Flushed()[0].Pod)
		require.Equal(t, "etcd", reporter.Flushed()[1].Pod)
		require.Equal(t, 2900*time.Millisecond, n.killedAfter("etcd", began), "2.5 s after the last answer")
		require.Equal(t, 5800*time.Millisecond, n.releasedAfter(began))
		report := n.lastReport()
		for _, pod := range report.Pods {
			require.Equal(t, pod.Name == "api", pod.Unflushed, pod.Name)
		}
		require.Len(t, report.Errors, 1)
		require.Contains(t, report.Errors[0], "failed to flush the final statuses of 1 pods")
		require.Contains(t, report.Errors[0], "pod default/api: conflict")
	})
}

// refusingReporter is a reporter that accepts no final status of one pod.
type refusingReporter struct {
	*shutdowntest.Reporter

	name string
}

func (r refusingReporter) FlushPod(ctx context.Context, pod *v1.Pod) error {
	if pod.Name == r.name {
		return errors.New("conflict")
	}
	return r.Reporter.FlushPod(ctx, pod)
}

// A hook that ignores its context delays neither the drain nor the host.
func TestDeafHooks(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
		over := make(chan struct{})
		n.opts.Volumes = volumes(func(context.Context, []*v1.Pod) error { <-over; return nil })
		n.opts.OnRelease = func(context.Context) { <-over }
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, 36250*time.Millisecond, n.releasedAfter(began), "half of the margin is for OnRelease")
		close(over)
	})
}

// A hold delays the first kill, and the host is asked for its time too.
func TestHold(t *testing.T) {
	for _, test := range []struct {
		name            string
		limit           time.Duration
		holds           time.Duration
		killed, release time.Duration
	}{
		{"ends", 0, 4 * time.Second, 4 * time.Second, 34 * time.Second},
		{"hangs", 0, time.Hour, 10 * time.Second, 40 * time.Second},
		{"little room", 33 * time.Second, time.Hour, 500 * time.Millisecond, 30500 * time.Millisecond},
		{"no room", 30 * time.Second, time.Hour, 0, 29500 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("etcd", topPriority, 60)), func(t *testing.T, n *node) {
				n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
				n.host.Limit = test.limit
				n.opts.Hold = func(ctx context.Context) error {
					select {
					case <-time.After(test.holds):
						return nil
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				}
				n.run()
				require.Equal(t, 42500*time.Millisecond, n.host.Wishes()[0])
				began := time.Now()
				n.announce()
				n.advance(2 * time.Minute)
				require.Equal(t, test.killed, n.killedAfter("web", began))
				require.Equal(t, map[string]int64{"web": 20, "etcd": 10}, n.grantedSeconds())
				require.Equal(t, test.release, n.releasedAfter(began))
			})
		})
	}
}

// The hold and the publishing have separate times: neither gets what the other leaves.
func TestHoldBesidePublishing(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	for _, test := range []struct {
		name      string
		hold      func(context.Context) error
		publishes time.Duration
		killed    time.Duration
	}{
		{"the publishing hangs", func(context.Context) error { return nil }, time.Hour, 2 * time.Second},
		{"the hold hangs", hang, 0, 10 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
				n.opts.Hold = test.hold
				n.opts.Reporter = flusher{&shutdowntest.Reporter{PublishTakes: test.publishes}}
				n.run()
				began := time.Now()
				n.announce()
				n.advance(time.Minute)
				require.InDelta(t, test.killed, n.killedAfter("web", began), float64(100*time.Millisecond))
			})
		})
	}
}

// A cancellation ends a hold, and no pod is killed.
func TestHoldIsCancelled(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node) {
		n.opts.Hold = func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
		n.run()
		n.announce()
		n.host.Cancel()
		n.advance(time.Minute)
		require.Empty(t, n.killer.Kills())
		require.True(t, n.lastReport().Cancelled)
	})
}

// LateStart begins the kills as late as possible. New pods are refused and the node state is
// published at once.
func TestLateStart(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("etcd", topPriority, 60)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter, n.opts.Plan.FlushReserve = reporter, -1
		n.opts.LateStart = func(event shutdown.Event) bool { return event.Origin == "cloud" }
		n.run()
		began := time.Now()
		require.NoError(t, n.m.Trigger(shutdown.Event{Origin: "cloud", Deadline: began.Add(2 * time.Minute)}))
		n.advance(time.Second)
		require.Len(t, announcements(t, reporter), 1)
		require.False(t, n.m.Admit(nil).Admit)
		n.advance(5 * time.Minute)
		require.Equal(t, 85500*time.Millisecond, n.killedAfter("web", began), "119.5 s less the floor and what both buckets may take")
		require.Equal(t, map[string]int64{"web": 20, "etcd": 10}, n.grantedSeconds())
		require.Equal(t, 115500*time.Millisecond, n.releasedAfter(began))
	})
}

// OnRelease is called right before the host is released.
func TestOnRelease(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
		var held []int
		n.opts.OnRelease = func(context.Context) { held = append(held, n.host.Held()) }
		n.run()
		n.announce()
		require.Equal(t, []int{1}, held)
		require.Zero(t, n.host.Held())
	})
}

// An OnRelease that panics is on record, though the report was complete before it.
func TestAFailureAtTheReleaseIsStored(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
		n.opts.StateDir = t.TempDir()
		n.opts.OnRelease = func(context.Context) { panic("nobody listens") }
		n.run()
		n.announce()
		stored, _, err := shutdown.StoredReport(n.opts.StateDir) // the host goes on at once
		require.NoError(t, err)
		require.Len(t, stored.Errors, 1)
		require.Contains(t, stored.Errors[0], "nobody listens")
		require.False(t, stored.Ended.IsZero())
		require.Zero(t, n.host.Held())
		n.advance(time.Minute)
	})
}

// A shutdown that overtakes another one does not call Hold again.
func TestOvertakingDoesNotHoldAgain(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		usePodsThatUseAllTheirGrace(n)
		holds := 0
		n.opts.Hold = func(context.Context) error { holds++; return nil }
		n.run()
		began := time.Now()
		require.NoError(t, n.m.Trigger(shutdown.Event{}))
		n.advance(time.Second)
		require.Equal(t, map[string]int64{"web": 20}, n.grantedSeconds())
		n.host.Announce(shutdown.Event{Deadline: began.Add(35 * time.Second)})
		n.advance(time.Minute)
		require.Equal(t, 1, holds)
		require.Equal(t, 20*time.Second, n.killedAfter("etcd", began))
	})
}

// The report names the hooks that fail. It names none if they succeed, or if the shutdown was
// cancelled while they ran.
func TestReportOfTheHooks(t *testing.T) {
	errBoom := errors.New("boom")
	for _, test := range []struct {
		name   string
		change func(*node, *shutdowntest.Reporter)
		cancel bool
		want   []string
	}{
		{name: "all is well", change: func(n *node, _ *shutdowntest.Reporter) {
			n.opts.Hold = func(context.Context) error { return nil }
		}},
		{name: "the hold fails", change: func(n *node, _ *shutdowntest.Reporter) {
			n.opts.Hold = func(context.Context) error { return errBoom }
		}, want: []string{"failed to hold the shutdown: boom"}},
		{name: "the hold is cancelled", change: func(n *node, _ *shutdowntest.Reporter) {
			n.opts.Hold = func(ctx context.Context) error { <-ctx.Done(); return errBoom }
		}, cancel: true},
		{name: "late start hangs", change: func(n *node, _ *shutdowntest.Reporter) {
			n.opts.LateStart = func(shutdown.Event) bool { <-time.After(5 * time.Second); return true }
		}, want: []string{"failed to ask whether the drain begins late, it begins at once: "}},
		{name: "publishing fails", change: func(_ *node, r *shutdowntest.Reporter) {
			r.PublishErr = func(int) error { return errBoom }
		}, want: []string{"failed to publish the node state: boom"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, twoPods(), func(t *testing.T, n *node) {
				reporter := &shutdowntest.Reporter{}
				n.opts.Reporter = reporter
				n.killer.Default = shutdowntest.Behaviour{Takes: time.Second}
				test.change(n, reporter)
				n.run()
				n.announce()
				if test.cancel {
					n.advance(time.Second)
					n.host.Cancel()
				}
				n.advance(time.Minute)
				got := n.lastReport().Errors
				require.Len(t, got, len(test.want), "%q", got)
				for i, want := range test.want {
					require.Contains(t, got[i], want)
				}
			})
		})
	}
}
