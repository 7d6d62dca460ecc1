//go:build go1.25

package shutdown_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// failingKiller is a killer whose first calls fail. Each call takes a second. asked has the grace periods of
// all calls.
type failingKiller struct {
	failures int
	err      error

	mu    sync.Mutex
	asked []int64
}

// kill is the function of a PodKillerFunc. The first a.failures calls return a.err.
func (a *failingKiller) kill(_ context.Context, _ *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	a.mu.Lock()
	a.asked = append(a.asked, *req.GracePeriodSeconds)
	n := len(a.asked)
	a.mu.Unlock()
	<-time.After(time.Second)
	if n <= a.failures {
		return shutdown.KillResult{}, a.err
	}
	return shutdown.KillResult{Outcome: "Graceful"}, nil
}

// A failed kill is retried a second later with the rest of the grace period: as each call takes 1 s too, 5 s
// become 3 s, 1 s, and then 0 s. The next bucket, with etcd, waits for that. An error that wraps ErrNoRetry
// is not retried.
func TestAFailedKillIsRetriedWithTheRemainingTime(t *testing.T) {
	errAway := errors.New("the runtime is away")
	for _, test := range []struct {
		name     string
		failures int // the number of calls that fail
		err      error
		asked    []int64       // the grace periods of all calls
		etcd     time.Duration // from the announcement to its kill
		outcome  string        // in the report
		report   string        // the error in the report
	}{
		{"twice", 2, errAway, []int64{5, 3, 1}, 5 * time.Second, "Graceful", ""},
		{"beyond its grace", 4, errAway, []int64{5, 3, 1, 0, 0}, 9 * time.Second, "Graceful", ""},
		{"for good", 1, fmt.Errorf("%w: %w", errAway, shutdown.ErrNoRetry), []int64{5}, time.Second, "", "the runtime is away: the kill is not retried"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, list(shutdowntest.Pod("web", 0, 5), shutdowntest.Pod("etcd", topPriority, 5)), func(t *testing.T, n *node) {
				killer := &failingKiller{failures: test.failures, err: test.err}
				n.opts.Killer = shutdown.PodKillerFunc(func(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
					if pod.Name == "web" {
						return killer.kill(ctx, pod, req)
					}
					return n.killer.KillPod(ctx, pod, req)
				})
				n.run()
				began := time.Now()
				n.announce()
				n.advance(time.Minute)
				require.Equal(t, test.asked, killer.asked)
				require.Equal(t, test.etcd, n.killedAfter("etcd", began))
				require.Equal(t, test.outcome, n.lastReport().Pods[0].Outcome)
				require.Equal(t, test.report, n.lastReport().Pods[0].Error)
			})
		})
	}
}

// ongoingKillError is the error of a kill that is still under way.
type ongoingKillError struct{ after time.Duration }

func (ongoingKillError) Error() string { return "timeout waiting to kill pod" }

// Await returns when the kill is over, after g.after.
func (g ongoingKillError) Await(context.Context) (shutdown.KillResult, error) {
	<-time.After(g.after)
	return shutdown.KillResult{Outcome: "Forced"}, nil
}

// If the killer's error has an Await method, the manager calls Await and does not call the killer again.
func TestAKillWhoseErrorHasAwaitIsNotRepeated(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 5), shutdowntest.Pod("etcd", topPriority, 5)), func(t *testing.T, n *node) {
		asked := 0
		n.opts.Killer = shutdown.PodKillerFunc(func(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
			if pod.Name == "web" {
				asked++
				return shutdown.KillResult{}, fmt.Errorf("overdue: %w", ongoingKillError{8 * time.Second})
			}
			return n.killer.KillPod(ctx, pod, req)
		})
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, 1, asked)
		require.Equal(t, 8*time.Second, n.killedAfter("etcd", began))
		require.Equal(t, "Forced", n.lastReport().Pods[0].Outcome)
	})
}

// The end of a pod that outlives its shutdown is added to the stored report, also after the host's time is
// over.
func TestTheEndOfAPodAfterTheReleaseIsStored(t *testing.T) {
	for _, after := range []time.Duration{25 * time.Second, time.Minute} {
		t.Run(fmt.Sprint("after ", after), func(t *testing.T) {
			inBubbleWithState(t, list(shutdowntest.Pod("stuck", 0, 20)), func(t *testing.T, n *node, one *boot) {
				n.killer.Default = shutdowntest.Behaviour{Hangs: true, IgnoresContext: true}
				n.runOnBoot(one)
				n.announce()
				n.advance(after)
				stored, _, err := shutdown.StoredReport(n.opts.StateDir)
				require.NoError(t, err)
				require.Zero(t, stored.Pods[0].Ended)
				n.killer.Release()
				n.advance(time.Second)
				require.NotZero(t, n.reportOfNextBoot().Pods[0].Ended)
			})
		})
	}
}
