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
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// TerminateAll drains the buckets one after the other, during Run or without it, and sends the final status of each of the
// two pods. From then on no pod is admitted. It is no shutdown of the node: it publishes no shutdown, keeps the lock that
// Run holds, and stores nothing.
func TestTerminateAllDrainsWithoutAShutdown(t *testing.T) {
	for name, runs := range map[string]bool{"during Run": true, "without Run": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			inBubble(t, webAndEtcd(), func(t *testing.T, n *node) {
				reporter := &shutdowntest.Reporter{}
				n.opts.Reporter, n.opts.StateDir = reporter, dir
				n.killer.Default = shutdowntest.Behaviour{Takes: 4 * time.Second}
				if runs {
					n.run()
				} else {
					n.newManager()
				}
				began := time.Now()
				report, err := n.m.TerminateAll(t.Context())
				require.NoError(t, err)
				require.Equal(t, 4*time.Second, n.killedAfter("etcd", began), "when web has ended")
				require.Equal(t, map[string]string{"web": "Graceful", "etcd": "Graceful"}, outcomes(report))
				require.Equal(t, "TerminateAll", report.Origin)
				for _, published := range reporter.Published() {
					require.False(t, published.ShuttingDown)
				}
				require.Len(t, reporter.Flushed(), 2, "the final statuses")
				require.False(t, n.admitsNewPods())
				require.Equal(t, runs, n.m.Inhibitor().Held, "only Run holds a lock, and it keeps it")
				_, found, err := shutdown.StoredReport(dir)
				require.NoError(t, err)
				require.False(t, found, "nothing is stored")
			})
		})
	}
}

// terminateAll calls TerminateAll in a goroutine. The channel receives the error.
func (n *node) terminateAll() <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := n.m.TerminateAll(n.t.Context())
		done <- err
	}()
	return done
}

// Concurrent calls share one drain, its report and its errors. If the context of one call ends, the drain
// continues for the other. A later call returns the report of the first one.
func TestCallsOfTerminateAllShareOneDrain(t *testing.T) {
	inBubble(t, webAndEtcd(), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 4 * time.Second}
		n.opts.Volumes = volumes(func(context.Context, []*v1.Pod) error { return errors.New("boom") })
		n.run()
		short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		shortErr := make(chan error, 1)
		go func() { _, err := n.m.TerminateAll(short); shortErr <- err }()
		other := n.terminateAll()
		first, err := n.m.TerminateAll(t.Context())
		require.EqualError(t, err, "The unmount of the volumes failed: boom")
		require.Equal(t, []string{"web", "etcd"}, names(first))
		require.NotZero(t, first.Ended)
		require.ErrorIs(t, <-shortErr, context.DeadlineExceeded)
		require.EqualError(t, <-other, err.Error())

		// A later call drains nothing, although there is a new pod.
		n.setPods(shutdowntest.Pod("late", regularPriority, 5))
		later, err := n.m.TerminateAll(t.Context())
		require.Error(t, err, "the first drain's error")
		require.Equal(t, first, later)
		require.Len(t, n.killer.Kills(), 2)
	})
}

// Run ends during TerminateAll, which drains alone or has joined the drain of a shutdown. The drain continues: all pods are
// killed, and their final statuses are sent.
func TestTerminateAllContinuesAfterRun(t *testing.T) {
	for name, announced := range map[string]bool{"alone": false, "during a shutdown": true} {
		subtestInBubble(t, name, webAndEtcd(), func(t *testing.T, n *node) {
			reporter := &shutdowntest.Reporter{FlushTakes: 100 * time.Millisecond}
			n.opts.Reporter = reporter
			n.killer.Default = shutdowntest.Behaviour{Takes: 4 * time.Second}
			n.run()
			if announced {
				n.announce()
			}
			done := n.terminateAll()
			n.advance(time.Second)
			requireEnded(t, n.stopRun())
			require.NoError(t, <-done)
			_, isKilled := n.killer.Kill("etcd")
			require.True(t, isKilled)
			require.Len(t, reporter.Flushed(), 2, "their final statuses")
		})
	}
}

// No schedule is configured, and ListPods always fails. TerminateAll returns the error of the list after three waits:
//
//   - 30 s for the first list, which would decide how long the drain takes;
//   - 30 s for the only bucket: without a schedule it is as long as the longest grace period of a pod, and at least 30 s;
//   - 1 s for the list after the bucket.
func TestTerminateAllEndsEvenIfListPodsAlwaysFails(t *testing.T) {
	inBubble(t, noPods(), func(t *testing.T, n *node) {
		n.opts.Config = plan.Config{}
		n.opts.ListPods = func(context.Context) ([]*v1.Pod, error) { return nil, errNotSynced }
		n.newManager()
		began := time.Now()
		_, err := n.m.TerminateAll(t.Context())
		require.EqualError(t, err, "the list of the pods failed: the informer is not synced")
		require.Equal(t, (30+30+1)*time.Second, time.Since(began))
	})
}

// TerminateAll is called during a shutdown, which is cancelled 3 s later. TerminateAll then begins a drain of its own. Its
// report starts at 3 s. It also has web, which the shutdown began to kill at 0 s and which ends at 4 s. etcd is killed then,
// and ends at 8 s.
func TestTheReportOfALateTerminateAllHasTheRightTimes(t *testing.T) {
	inBubble(t, webAndEtcd(), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 4 * time.Second}
		n.run()
		began := time.Now()
		n.announce()
		done := n.terminateAll()
		n.advance(3 * time.Second)
		n.host.Cancel()
		require.NoError(t, <-done)
		report := n.lastReport()
		require.Equal(t, "TerminateAll", report.Origin)
		require.Equal(t, began.Add(3*time.Second), report.Started)
		web := podReport(t, report, "web")
		require.Equal(t, began, web.Started)
		require.Equal(t, began.Add(4*time.Second), web.Ended)
		require.Equal(t, began.Add(8*time.Second), podReport(t, report, "etcd").Ended)
	})
}

// The context of TerminateAll ends after 3 s. TerminateAll returns its cause, and names the pods that have not ended. No
// further pod is killed.
func TestTerminateAllEndsWithItsContext(t *testing.T) {
	errStopped := errors.New("stopped waiting")
	inBubble(t, webAndEtcd(), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Hangs: true}
		n.run()
		began := time.Now()
		ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, errStopped)
		defer cancel()
		report, err := n.m.TerminateAll(ctx)
		require.ErrorIs(t, err, errStopped)
		require.ErrorContains(t, err, "pod default/web: not known to have ended")
		require.Equal(t, 3*time.Second, time.Since(began))
		require.Zero(t, report.Ended, "the drain has no end")
		n.advance(time.Minute)
		require.Equal(t, []string{"web"}, names(n.lastReport()), "etcd is not killed")
	})
}

// The killer hangs. TerminateAll waits for the killer until 10 s after the drain, and its error names the pod. Without Run,
// TerminateAll then cancels the call of the killer, waits another 10 s for it, and names the call too.
func TestTerminateAllWaitsTenSecondsForAKillerThatHangs(t *testing.T) {
	for name, runs := range map[string]bool{"during Run": true, "without Run": false} {
		subtestInBubble(t, name, list(shutdowntest.Pod("web", regularPriority, 5)), func(t *testing.T, n *node) {
			n.killer.Default = shutdowntest.Behaviour{Hangs: true, IgnoresContext: true}
			want, waited := "pod default/web: not known to have ended", 10*time.Second
			if runs {
				n.run()
			} else {
				n.newManager()
				want, waited = want+"\ncalls that have not returned: Options.Killer for pod default/web", 20*time.Second
			}
			report, err := n.m.TerminateAll(t.Context())
			require.EqualError(t, err, want)
			require.Equal(t, waited, time.Since(report.Ended))
			n.killer.Release()
		})
	}
}

// During Run, TerminateAll waits at most 10 s for OnReport. Without Run it waits at most 20 s (another 10 s for calls that have
// not returned), and its error then names the call. It does not wait beyond the end of its own context.
func TestTerminateAllWaitsForOnReport(t *testing.T) {
	for name, test := range map[string]struct {
		runs    bool          // Run is under way
		takes   time.Duration // how long OnReport takes
		timeout time.Duration // of the context of TerminateAll
		took    time.Duration // how long TerminateAll must take
		err     string
	}{
		"slow OnReport":              {runs: true, takes: 9 * time.Second, timeout: time.Hour, took: 9 * time.Second},
		"OnReport hangs":             {runs: true, takes: 15 * time.Second, timeout: time.Hour, took: 10 * time.Second},
		"the context ends":           {runs: true, takes: 9 * time.Second, timeout: 3 * time.Second, took: 3 * time.Second, err: "context deadline exceeded"},
		"slow OnReport without Run":  {takes: 15 * time.Second, timeout: time.Hour, took: 15 * time.Second},
		"OnReport hangs without Run": {takes: time.Minute, timeout: time.Hour, took: 20 * time.Second, err: "calls that have not returned: Options.OnReport"},
	} {
		subtestInBubble(t, name, webAndEtcd(), func(t *testing.T, n *node) {
			n.opts.OnReport = func(context.Context, shutdown.Report) { <-time.After(test.takes) }
			if test.runs {
				n.run()
			} else {
				n.newManager()
			}
			ctx, cancel := context.WithTimeout(t.Context(), test.timeout)
			defer cancel()
			began := time.Now()
			report, err := n.m.TerminateAll(ctx)
			require.Len(t, report.Pods, 2)
			require.Equal(t, test.took, time.Since(began))
			if test.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, test.err)
			}
			n.advance(time.Minute)
		})
	}
}
