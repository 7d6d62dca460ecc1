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

// TerminateAll drains bucket after bucket, whether the manager runs or not. The node state is
// not published, the host stays held, and no shutdown is stored.
func TestTerminateAll(t *testing.T) {
	for name, runs := range map[string]bool{"within Run": true, "without Run": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			inBubble(t, twoPods(), func(t *testing.T, n *node) {
				reporter := &shutdowntest.Reporter{}
				n.opts.Reporter, n.opts.StateDir = reporter, dir
				n.killer.Default = shutdowntest.Behaviour{Takes: 4 * time.Second}
				if runs {
					n.run()
				} else {
					m, err := shutdown.NewManager(n.opts)
					require.NoError(t, err)
					n.m = m
				}
				began := time.Now()
				report, err := n.m.TerminateAll(t.Context())
				require.NoError(t, err)
				require.Equal(t, 8*time.Second, time.Since(began))
				require.Equal(t, 4*time.Second, n.killedAfter("etcd", began))
				require.Equal(t, map[string]string{"web": "Graceful", "etcd": "Graceful"}, outcomes(report))
				require.Equal(t, "TerminateAll", report.Origin)
				for _, published := range reporter.Published() {
					require.False(t, published.State.ShuttingDown)
				}
				require.Len(t, reporter.Flushed(), 2)
				require.False(t, n.m.Admit(nil).Admit, "for good")
				require.Equal(t, runs, n.m.Inhibitor().Held)
				_, found, err := shutdown.StoredReport(dir)
				require.NoError(t, err)
				require.False(t, found)
			})
		})
	}
}

// TerminateAll waits for a shutdown that is under way and returns its report.
func TestTerminateAllWithinAShutdown(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 4 * time.Second}
		n.run()
		n.host.Announce(shutdown.Event{Kind: shutdown.KindHalt})
		synctest.Wait()
		report, err := n.m.TerminateAll(t.Context())
		require.NoError(t, err)
		require.Equal(t, shutdown.KindHalt, report.Kind)
		require.Len(t, n.killer.Kills(), 2)
	})
}

// TerminateAll waits for the shutdown that is draining, and ten seconds longer for a killer that hangs: it
// does not wait for the end of Run, for which an agent may wait until TerminateAll has returned.
func TestTerminateAllWithinAShutdownWhoseKillerHangs(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Hangs: true, Deaf: true}}
		n.run()
		began := time.Now()
		n.announce()
		report, err := n.m.TerminateAll(t.Context())
		require.EqualError(t, err, "pod default/web: it is not known to have ended")
		require.Equal(t, []string{"web", "etcd"}, names(report))
		require.Equal(t, n.releasedAfter(began)+10*time.Second, time.Since(began))
		n.killer.Release()
	})
}

// So it does if the shutdown drains again meanwhile: the ten seconds count from the end of the last drain.
func TestTerminateAllWithinAShutdownThatDrainsAgain(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Hangs: true, Deaf: true}}
		n.run()
		began := time.Now()
		n.announce()
		done := n.terminateAll()
		n.advance(35 * time.Second)
		released := n.releasedAfter(began)
		require.NoError(t, n.m.Trigger(shutdown.Event{Origin: "cloud", Deadline: time.Now().Add(time.Minute)}))
		n.advance(released + 10*time.Second - 35*time.Second)
		require.Empty(t, done)
		n.advance(2 * time.Minute)
		require.EqualError(t, <-done, "pod default/web: it is not known to have ended")
		n.killer.Release()
	})
}

// Two calls at the same time share one drain, and both return its report. If the context of one
// call ends, the drain goes on for the other.
func TestTerminateAllTwice(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 4 * time.Second}
		n.run()
		reports := make(chan shutdown.Report, 2)
		for range 2 {
			go func() {
				report, err := n.m.TerminateAll(t.Context())
				require.NoError(t, err)
				reports <- report
			}()
		}
		n.advance(time.Minute)
		require.Equal(t, <-reports, <-reports)
		require.Len(t, n.killer.Kills(), 2)
	})
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 4 * time.Second}
		n.run()
		first, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { _, err := n.m.TerminateAll(first); ended <- err }()
		n.advance(time.Second)
		time.AfterFunc(time.Second, cancel)
		report, err := n.m.TerminateAll(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, <-ended, context.Canceled)
		require.NotZero(t, report.Ended)
		_, killed := n.killer.Kill("etcd")
		require.True(t, killed)
	})
}

// terminateAll calls TerminateAll in a goroutine, which sends the error.
func (n *node) terminateAll() <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := n.m.TerminateAll(n.t.Context())
		done <- err
	}()
	return done
}

// A shutdown begins during TerminateAll, with a list that is empty. The pods that are being killed are
// waited for all the same, and are in its report.
func TestShutdownWithinTerminateAllWaitsForUnlistedPods(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 20)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 15 * time.Second}
		n.run()
		began := time.Now()
		done := n.terminateAll()
		n.advance(3 * time.Second)
		n.setPods()
		n.announce()
		require.NoError(t, <-done)
		n.advance(time.Second)
		require.Equal(t, 15*time.Second, n.releasedAfter(began))
		require.Equal(t, map[string]string{"web": "Graceful"}, outcomes(n.lastReport()))
		require.True(t, n.lastReport().Pods[0].Joined)
		require.Len(t, n.killer.Kills(), 1)
	})
}

// A shutdown that begins during TerminateAll waits for the pods that are being killed, and kills
// the others.
func TestShutdownWithinTerminateAll(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.run()
		began := time.Now()
		done := n.terminateAll()
		n.advance(time.Second)
		n.announce()
		n.advance(time.Minute)
		require.NoError(t, <-done)
		kill, _ := n.killer.Kill("web")
		require.Equal(t, began, kill.Started, "not signalled again")
		require.Len(t, n.killer.Kills(), 2, "etcd is killed by the shutdown only")
		require.Equal(t, 31*time.Second, n.releasedAfter(began))
	})
}

// TerminateAll kills the pods that a cancelled shutdown has spared, whether the shutdown began
// before TerminateAll or during it.
func TestTerminateAllAfterACancelledShutdown(t *testing.T) {
	for name, before := range map[string]bool{"before": true, "meanwhile": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, twoPods(), func(t *testing.T, n *node) {
				n.killer.Default = shutdowntest.Behaviour{Takes: 4 * time.Second}
				n.run()
				if before {
					n.announce()
				}
				done := n.terminateAll()
				n.advance(time.Second)
				if !before {
					n.announce()
					n.advance(time.Second)
				}
				n.host.Cancel()
				n.advance(time.Minute)
				require.NoError(t, <-done)
				_, killed := n.killer.Kill("etcd")
				require.True(t, killed)
			})
		})
	}
}

// The drain of TerminateAll goes on after the end of Run, statuses included, whether it runs alone
// or has joined a shutdown.
func TestRunEndsWithinTerminateAll(t *testing.T) {
	for name, announced := range map[string]bool{"alone": false, "within a shutdown": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, twoPods(), func(t *testing.T, n *node) {
				reporter := &shutdowntest.Reporter{FlushTakes: 100 * time.Millisecond}
				n.opts.Reporter = reporter
				n.killer.Default = shutdowntest.Behaviour{Takes: 4 * time.Second}
				n.run()
				if announced {
					n.announce()
				}
				done := n.terminateAll()
				n.advance(time.Second)
				n.stop()
				n.stop = nil
				require.NoError(t, <-n.ended)
				require.NoError(t, <-done)
				_, killed := n.killer.Kill("etcd")
				require.True(t, killed)
				require.Len(t, reporter.Flushed(), 2)
			})
		})
	}
}

// TerminateAll returns when its context ends, with the cause of that.
func TestTerminateAllIsBounded(t *testing.T) {
	errEnough := errors.New("enough")
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Hangs: true}
		n.run()
		began := time.Now()
		ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, errEnough)
		defer cancel()
		report, err := n.m.TerminateAll(ctx)
		require.ErrorIs(t, err, errEnough)
		require.Equal(t, 3*time.Second, time.Since(began))
		require.Zero(t, report.Ended)
		require.Len(t, report.Pods, 1)
		require.Error(t, n.m.ShutdownStatus())

		n.announce()
		ctx, cancel = context.WithTimeoutCause(t.Context(), 3*time.Second, errEnough)
		defer cancel()
		_, err = n.m.TerminateAll(ctx)
		require.ErrorIs(t, err, errEnough)
	})
}

// A killer that hangs is waited for until ten seconds after the drain, also if no context ends. The error
// names the call and the pod.
func TestTerminateAllWhoseKillerHangs(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Hangs: true, Deaf: true}
		n.run()
		began := time.Now()
		report, err := n.m.TerminateAll(t.Context())
		require.EqualError(t, err, "pod default/web: it is not known to have ended\ncalls that have not returned: Options.Killer for pod default/web")
		require.Equal(t, report.Ended.Add(10*time.Second), time.Now())
		require.Less(t, report.Ended.Sub(began), 33*time.Second)
		n.killer.Release()
	})
}

// The manager does not keep the drain of TerminateAll after its end.
func TestTerminateAllIsForgotten(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.run()
		_, err := n.m.TerminateAll(t.Context())
		require.NoError(t, err)
		require.Zero(t, n.m.UnendedKills())
	})
}

// TerminateAll returns the errors of the drain in addition to the report.
func TestTerminateAllGivesItsFailures(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.opts.Volumes = volumes(func(context.Context, []*v1.Pod) error { return errors.New("boom") })
		n.run()
		report, err := n.m.TerminateAll(t.Context())
		require.ErrorContains(t, err, "unmount: boom")
		require.Len(t, report.Errors, 2, "of both buckets")
	})
}

// A second TerminateAll returns the errors of the drain that the first one has begun.
func TestTerminateAllTwiceGivesTheFailures(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.opts.Volumes = volumes(func(context.Context, []*v1.Pod) error { return errors.New("boom") })
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Second}
		n.run()
		first := make(chan error, 1)
		go func() {
			_, err := n.m.TerminateAll(t.Context())
			first <- err
		}()
		synctest.Wait()
		_, err := n.m.TerminateAll(t.Context())
		require.ErrorContains(t, err, "unmount: boom")
		require.EqualError(t, <-first, err.Error())
	})
}

// A shutdown has let the host go and still waits for a pod. TerminateAll joins its kill.
func TestTerminateAllAfterTheRelease(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Hangs: true, Deaf: true}
		n.run()
		n.announce()
		n.advance(time.Minute)
		require.Zero(t, n.host.Held())
		time.AfterFunc(10*time.Second, n.killer.Release)
		report, err := n.m.TerminateAll(t.Context())
		require.NoError(t, err)
		require.Len(t, n.killer.Kills(), 1)
		require.Len(t, report.Pods, 1)
		require.True(t, report.Pods[0].Joined)
	})
}

// A shutdown whose deadline is over at its begin signals its pods when it is about to let the host go. Who
// outlives it gets no second grace period.
func TestTerminateAllAfterADeadlineThatWasOver(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Hangs: true}
		n.run()
		require.NoError(t, n.m.Trigger(shutdown.Event{Origin: "cloud", Deadline: time.Now().Add(-time.Second)}))
		n.advance(5 * time.Second)
		_, err := n.m.TerminateAll(t.Context())
		require.EqualError(t, err, "pod default/web: timeout waiting to kill pod")
		require.Len(t, n.killer.Kills(), 2)
		require.Equal(t, map[string]int64{"web": 0}, n.grantedSeconds())
	})
}

// Run ends within a shutdown, and TerminateAll drains the rest. A pod that the shutdown has signalled is
// counted once, and its grace period goes on.
func TestTerminateAllAfterRunHasEndedWithinAShutdown(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		told := countReports(t, n)
		n.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Hangs: true}}
		n.run()
		began := time.Now()
		n.announce()
		n.advance(5 * time.Second)
		n.stop()
		n.stop = nil
		require.NoError(t, <-n.ended)
		report, err := n.m.TerminateAll(t.Context())
		require.EqualError(t, err, "pod default/web: timeout waiting to kill pod")
		require.Equal(t, []string{"web", "etcd"}, names(report))
		require.True(t, report.Pods[0].Started.Equal(began))
		require.True(t, report.Pods[0].Joined)
		kill, _ := n.killer.Kill("web")
		require.Equal(t, int64(15), *kill.Request.GracePeriodSeconds)
		require.Equal(t, 2.0, told.podsCounted(t))
	})
}
