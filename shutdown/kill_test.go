package shutdown_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// failingKiller is a killer whose first calls fail; each takes a second.
type failingKiller struct {
	failures int
	err      error

	mu    sync.Mutex
	asked []int64
}

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

// A failed kill is tried again a second later with the rest of the grace period, and then with 0.
// Its bucket goes on meanwhile. A final error is not tried again.
func TestKillIsTriedAgain(t *testing.T) {
	errAway := errors.New("the runtime is away")
	for _, test := range []struct {
		name     string
		failures int
		err      error
		asked    []int64
		etcd     time.Duration
		outcome  string
		report   string
	}{
		{"twice", 2, errAway, []int64{5, 3, 1}, 5 * time.Second, "Graceful", ""},
		{"beyond its grace", 4, errAway, []int64{5, 3, 1, 0, 0}, 9 * time.Second, "Graceful", ""},
		{"for good", 1, fmt.Errorf("%w: %w", errAway, shutdown.ErrNoRetry), []int64{5}, time.Second, "", "the runtime is away: the kill is not tried again"},
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

// ongoingKillError is an error of a kill that ends later.
type ongoingKillError struct{ after time.Duration }

func (ongoingKillError) Error() string { return "timeout waiting to kill pod" }

func (g ongoingKillError) Await(context.Context) (shutdown.KillResult, error) {
	<-time.After(g.after)
	return shutdown.KillResult{Outcome: "Forced"}, nil
}

// A killer whose error says that the kill goes on is waited for and not called again.
func TestKillThatGoesOn(t *testing.T) {
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

// A pod that is still ending in an earlier shutdown keeps the result of that kill: a failure
// stays one, and the status is kept.
func TestJoinedKillKeepsItsResult(t *testing.T) {
	status := v1.PodStatus{Phase: v1.PodSucceeded}
	for name, how := range map[string]shutdowntest.Behaviour{
		"ends":  {Takes: 3 * time.Second, Status: &status},
		"fails": {Takes: 3 * time.Second, Err: shutdown.ErrNoRetry},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, list(shutdowntest.Pod("web", 0, 10)), func(t *testing.T, n *node) {
				n.killer.Default = how
				reporter := &shutdowntest.Reporter{}
				n.opts.Reporter = flusher{reporter}
				n.run()
				n.announce()
				n.advance(time.Second)
				n.host.Cancel()
				n.advance(time.Second)
				n.announce()
				n.advance(time.Minute)
				if how.Err != nil {
					require.Empty(t, reporter.Flushed())
					require.NotEmpty(t, n.lastReport().Pods[0].Error)
					return
				}
				require.NotEmpty(t, reporter.Flushed())
				for _, flushed := range reporter.Flushed() {
					require.Equal(t, v1.PodSucceeded, flushed.Final.Status.Phase, "as the killer has said")
				}
			})
		})
	}
}

// OnPlan gets the plan when a drain begins, and OnReport the report when it has ended or was
// cancelled.
func TestOnPlanAndOnReport(t *testing.T) {
	for _, cancels := range []bool{false, true} {
		inBubble(t, list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("etcd", topPriority, 5)), func(t *testing.T, n *node) {
			n.killer.Default = shutdowntest.Behaviour{Takes: 4 * time.Second}
			plans, reports := make(chan plan.Plan, 9), make(chan shutdown.Report, 9)
			n.opts.OnPlan = func(_ context.Context, p plan.Plan) { plans <- p }
			n.opts.OnReport = func(_ context.Context, r shutdown.Report) { reports <- r }
			n.run()
			n.host.Announce(shutdown.Event{Kind: shutdown.KindReboot, Deadline: time.Now().Add(20 * time.Second)})
			synctest.Wait()
			require.Len(t, plans, 1)
			require.Equal(t, map[string]int64{"web": 15, "etcd": 5}, granted(<-plans))
			require.Empty(t, reports)
			if cancels {
				n.host.Cancel()
			}
			n.advance(time.Minute)
			require.Empty(t, plans)
			require.Len(t, reports, 1)
			report := <-reports
			require.Equal(t, shutdown.KindReboot, report.Kind)
			require.Equal(t, cancels, report.Cancelled)
			require.Equal(t, n.lastReport(), report)
		})
	}
}

// OnPlan is called after a second even if the pods cannot be listed.
func TestOnPlanWithoutPods(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		plans := make(chan plan.Plan, 9)
		n.opts.OnPlan = func(_ context.Context, p plan.Plan) { plans <- p }
		n.opts.Pods = shutdown.PodsFunc(func() []*v1.Pod { panic("no pods") })
		n.run()
		n.announce()
		n.advance(time.Second)
		require.Len(t, plans, 1)
		require.Empty(t, granted(<-plans))
	})
}

// A shutdown that nobody limits gives the last bucket all of its time, waits for its
// stragglers and calls OnRelease.
func TestShutdownWithoutALimit(t *testing.T) {
	for name, hangs := range map[string]bool{"uses all of its grace": false, "hangs": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("etcd", topPriority, 60)), func(t *testing.T, n *node) {
				n.opts.Source = nil
				released := 0
				n.opts.OnRelease = func(context.Context) { released++ }
				n.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Takes: time.Hour}, "etcd": {Takes: time.Hour, Hangs: hangs}}
				n.run()
				require.NoError(t, n.m.Trigger(shutdown.Event{}))
				n.advance(time.Minute)
				require.Equal(t, 1, released)
				require.Empty(t, n.lastReport().Errors)
				require.Equal(t, map[string]int64{"web": 20, "etcd": 10}, n.grantedSeconds())
				if !hangs {
					require.Equal(t, map[string]string{"web": "GraceExceeded", "etcd": "GraceExceeded"}, outcomes(n.lastReport()))
				}
			})
		})
	}
}
