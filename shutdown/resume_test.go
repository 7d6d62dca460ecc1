//go:build go1.25

package shutdown_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/podcondition"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// An agent is killed 22 s after the announcement, in the second bucket. The next one starts at 25 s, and resumes the drain: it admits
// no pod, kills only etcd, with the 5 s that its bucket still has, and ends at 30 s, as planned. A shutdown that Trigger announces,
// without a source, is resumed as well.
func TestAKilledAgentResumesWithTheSecondBucket(t *testing.T) {
	for name, hasSource := range map[string]bool{"with a source": true, "without a source": false} {
		t.Run(name, func(t *testing.T) {
			inBubbleWithState(t, webAndEtcd(), func(t *testing.T, n *node, thisBoot *boot) {
				if !hasSource {
					n.opts.Source = nil
				}
				n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
				n.runOnBoot(thisBoot)
				began := time.Now()
				if hasSource {
					n.host.Announce(source.Event{Origin: "test"})
				} else {
					require.NoError(t, n.m.Trigger(source.Event{Origin: "test"}))
				}
				n.advance(22 * time.Second)
				n.crash()
				n.setPods(n.pods[1]) // etcd: web has ended
				n.advance(3 * time.Second)

				n.runOnBoot(thisBoot)
				require.False(t, n.admitsNewPods())
				require.Equal(t, map[string]int64{"etcd": 5}, n.grantedSeconds())
				n.advance(time.Minute)
				require.Equal(t, 30*time.Second, n.endedAfter("etcd", began))

				report := n.lastReport()
				require.Equal(t, "test", report.Origin)
				require.True(t, began.Equal(report.Started))
				require.Equal(t, []string{"web", "etcd"}, names(report))
			})
		})
	}
}

// An agent is killed during a drain, and the next one starts 30 s after the announcement. It calls Prepare again, because the next agent
// too could start pods, but it does not call Hold again. The buckets keep their ends: that of web ends at 32 s, so web still has 2 s.
func TestAResumedDrainRepeatsPrepareButNotHold(t *testing.T) {
	inBubbleWithState(t, webAndEtcd(), func(t *testing.T, n *node, thisBoot *boot) {
		prepared, held := 0, 0
		n.opts.Prepare = func(context.Context) error { prepared++; return nil }
		n.opts.Hold = func(context.Context) error { held++; return nil }
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(thisBoot)
		n.host.Announce(source.Event{Deadline: time.Now().Add(50 * time.Second)})
		n.advance(time.Second)
		require.Equal(t, map[string]int64{"web": 20 + 2 + 10}, n.grantedSeconds(), "Prepare and Hold leave their 2 s and 10 s to web")
		n.crash()
		n.advance(29 * time.Second) // from 1 s to 30 s
		n.runOnBoot(thisBoot)
		n.advance(time.Minute)
		require.Equal(t, map[string]int64{"web": 32 - 30, "etcd": 10}, n.grantedSeconds())
		require.Equal(t, 2, prepared)
		require.Equal(t, 1, held)
	})
}

// A host may announce a shutdown whose deadline is as late as a time.Duration allows, 292 years. The next
// agent, 22 s later, resumes it: etcd has 8 s left of the 30 s of both buckets.
func TestAShutdownWithoutALimitIsResumed(t *testing.T) {
	inBubbleWithState(t, webAndEtcd(), func(t *testing.T, n *node, thisBoot *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(thisBoot)
		n.host.Announce(source.Event{Deadline: time.Now().Add(math.MaxInt64)})
		n.advance(22 * time.Second)
		n.crash()
		n.setPods(n.pods[1]) // etcd: web has ended
		n.runOnBoot(thisBoot)
		require.Equal(t, map[string]int64{"etcd": 8}, n.grantedSeconds())
	})
}

// inBubbleAfterCrashAt22s runs a test on a node whose agent was killed 22 s after the announcement of a shutdown.
// web has ended, and etcd has until 31 s: the first bucket has 20 s and 1 s for final statuses, the second
// one 10 s. The state log has the unfinished shutdown, whose drain would wait until 34 s: 1 s more for the second bucket's
// statuses, and 2 s for containers that have used up their grace period.
func inBubbleAfterCrashAt22s(t *testing.T, test func(t *testing.T, n *node, boot *boot)) {
	t.Helper()
	inBubbleWithState(t, webAndEtcd(), func(t *testing.T, n *node, thisBoot *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter, n.opts.Plan.PublishTimeout = reporterWithoutMarks{reporter}, -1
		n.runOnBoot(thisBoot)
		n.host.Announce(source.Event{Kind: source.KindReboot})
		n.advance(22 * time.Second)
		n.crash()
		test(t, n, thisBoot)
	})
}

// An agent was killed 22 s after the announcement, when etcd had until 31 s. The next agent has its lock, but cannot reach the host,
// and does not know whether the shutdown is still pending. After 5 s, at 27 s, it resumes the shutdown.
func TestAnAgentThatHasTheLockResumesWithoutTheHost(t *testing.T) {
	inBubbleAfterCrashAt22s(t, func(t *testing.T, n *node, boot *boot) {
		n.host.Script(func(h *shutdowntest.Host) { h.StoredLock, h.ConnectErr = true, errors.New("no bus") })
		n.setPods(n.pods[1]) // etcd: web has ended
		n.runOnBoot(boot)
		n.advance(5*time.Second - time.Millisecond)
		require.Empty(t, n.killer.Kills(), "it waits 5 s for the host")
		n.advance(time.Millisecond)
		require.Equal(t, map[string]int64{"etcd": 31 - 27}, n.grantedSeconds())
	})
}

// Trigger has announced a shutdown, and the agent is killed 2 s later. The next agent cannot reach the host and has no lock. After 5 s
// it resumes the drain nevertheless: only Trigger has announced the shutdown, so the host need not confirm it.
func TestADrainOfTriggerIsResumedWithoutTheHost(t *testing.T) {
	inBubbleWithState(t, webAndEtcd(), func(t *testing.T, n *node, thisBoot *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(thisBoot)
		require.NoError(t, n.m.Trigger(source.Event{}))
		n.advance(2 * time.Second)
		n.crash()
		n.host.Script(func(h *shutdowntest.Host) { h.ConnectErr = errors.New("no bus") })
		n.runOnBoot(thisBoot)
		n.advance(5 * time.Second)
		require.Equal(t, map[string]int64{"web": 20 - 2 - 5}, n.grantedSeconds())
		n.advance(time.Minute)
		require.Equal(t, []string{"web", "etcd"}, names(n.lastReport()))
	})
}

// Trigger announces a shutdown, and the agent is killed 2 s later. On the next agent, which cannot reach the host, Trigger cancels
// that shutdown: pods are admitted at once, and web keeps the rest of its 20 s. So does the agent after that, 1 s later.
func TestTriggerCancelsTheShutdownOfAPreviousAgent(t *testing.T) {
	inBubbleWithState(t, webAndEtcd(), func(t *testing.T, n *node, thisBoot *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(thisBoot)
		require.NoError(t, n.m.Trigger(source.Event{}))
		n.advance(2 * time.Second)
		n.crash()
		n.host.Script(func(h *shutdowntest.Host) { h.ConnectErr = errors.New("no bus") })

		n.runOnBoot(thisBoot)
		require.False(t, n.admitsNewPods())
		require.NoError(t, n.m.Trigger(source.Event{Cancelled: true}))
		require.True(t, n.admitsNewPods())
		n.advance(time.Second)
		require.Equal(t, map[string]int64{"web": 20 - 2}, n.grantedSeconds())
		n.crash()

		n.runOnBoot(thisBoot)
		require.True(t, n.admitsNewPods(), "the log says that the shutdown was cancelled")
		require.Equal(t, map[string]int64{"web": 20 - 3}, n.grantedSeconds())
	})
}

// An agent was killed 22 s after the announcement, and its drain would have waited until 34 s. The next agent cannot reach the host
// until then, and does not continue the drain. The report says that the shutdown was cancelled: not all pods were told to stop.
func TestADrainThatIsNotContinuedCountsAsCancelled(t *testing.T) {
	inBubbleAfterCrashAt22s(t, func(t *testing.T, n *node, boot *boot) {
		reports := make(chan shutdown.Report, 9)
		n.opts.OnReport = func(_ context.Context, r shutdown.Report) { reports <- r }
		n.host.Script(func(h *shutdowntest.Host) { h.ConnectErr = errors.New("no bus") })
		n.runOnBoot(boot)
		n.advance(12 * time.Second) // from 22 s to 34 s
		n.advance(time.Minute)      // etcd does not end, and the report waits for its grace period
		require.Len(t, reports, 1)
		require.True(t, (<-reports).Cancelled)
	})
}

// An agent was killed 22 s after the announcement, and its drain would have waited until 34 s. Until then a manager refuses all pods
// before its Run, because the shutdown may be resumed. From then on it refuses only etcd, which was signalled.
func TestPodsAreRefusedBeforeRunWhileAShutdownMayGoOn(t *testing.T) {
	inBubbleAfterCrashAt22s(t, func(t *testing.T, n *node, boot *boot) {
		m, err := shutdown.NewManagerOn(n.opts, boot.sinceBoot)
		require.NoError(t, err)
		require.False(t, m.Admit(nil).Admit)
		n.advance(12*time.Second - time.Millisecond) // from 22 s to 34 s
		require.False(t, m.Admit(nil).Admit)
		n.advance(time.Millisecond)
		require.True(t, m.Admit(nil).Admit, "a pod that the log does not name")
		require.False(t, m.Admit(n.pods[1]).Admit, "etcd")
	})
}

// moveStoredDates moves all dates in the state files by step: the files then look as if the wall clock had been stepped.
func (n *node) moveStoredDates(step time.Duration) {
	n.t.Helper()
	date := regexp.MustCompile(`"(1999|2000)-[^"]+"`) // the clock of the bubble begins with 2000
	for _, name := range []string{timesFile, logFile} {
		path := filepath.Join(n.opts.StateDir, name)
		data, err := os.ReadFile(path)
		require.NoError(n.t, err)
		require.Regexp(n.t, date, string(data))
		moved := date.ReplaceAllFunc(data, func(text []byte) []byte {
			at, err := time.Parse(`"`+time.RFC3339Nano+`"`, string(text))
			require.NoError(n.t, err)
			return []byte(at.Add(step).Format(`"` + time.RFC3339Nano + `"`))
		})
		require.NoError(n.t, os.WriteFile(path, moved, 0o600))
	}
}

// Deadlines in the state files count from the boot, so a step of the wall clock does not move them. An agent was killed 22 s after the
// announcement, when etcd had until 31 s. Two more agents start, at 25 s and at 28 s, each after a step of the wall clock.
func TestWallClockStepsDoNotMoveDeadlines(t *testing.T) {
	for _, step := range []time.Duration{0, -time.Hour, time.Hour} {
		t.Run("step of "+step.String(), func(t *testing.T) {
			inBubbleAfterCrashAt22s(t, func(t *testing.T, n *node, boot *boot) {
				began := time.Now().Add(-22 * time.Second)
				n.setPods(n.pods[1]) // etcd: web has ended
				n.moveStoredDates(step)
				n.advance(3 * time.Second)
				n.runOnBoot(boot)
				require.Equal(t, map[string]int64{"etcd": 31 - 25}, n.grantedSeconds())

				n.crash()
				n.moveStoredDates(step)
				n.advance(3 * time.Second)
				n.runOnBoot(boot)
				require.Equal(t, map[string]int64{"etcd": 31 - 28}, n.grantedSeconds())

				n.advance(time.Minute)
				require.Equal(t, 31*time.Second, n.endedAfter("etcd", began))
				require.True(t, began.Add(2*step).Equal(n.lastReport().Started), "a date in the report moves with both steps")
			})
		})
	}
}

// An agent dies 500 ms after the announcement, while it marks web as not ready, which takes 900 ms. The shutdown is
// cancelled before the next agent has marked or killed a pod. The next agent restores the readiness of both pods: it knows
// the mark of web from the log, and that of etcd from the pod's condition in the list.
func TestTheNextAgentRestoresReadiness(t *testing.T) {
	inBubbleWithState(t, webAndEtcd(), func(t *testing.T, n *node, thisBoot *boot) {
		reporter := &shutdowntest.Reporter{MarkTakes: 900 * time.Millisecond}
		n.opts.Reporter = reporter
		n.runOnBoot(thisBoot)
		n.announce()
		n.advance(500 * time.Millisecond)
		n.crash()
		podcondition.Set(&n.pods[1].Status, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: v1.PodReasonTerminationByKubelet}, metav1.Now())
		n.opts.ListPods = func(context.Context) ([]*v1.Pod, error) {
			<-time.After(100 * time.Millisecond) // so that the API server has accepted the node's state before
			return n.currentPods(), nil
		}
		n.runOnBoot(thisBoot)
		n.advance(300 * time.Millisecond)
		n.host.Cancel()
		n.advance(2 * time.Second)
		require.Empty(t, n.killer.Kills())
		ready := map[string]bool{}
		for _, mark := range reporter.Marked() {
			ready[mark.Pod] = mark.Ready
		}
		require.Equal(t, map[string]bool{"web": true, "etcd": true}, ready)
	})
}
