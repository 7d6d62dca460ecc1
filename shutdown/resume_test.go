//go:build go1.25

package shutdown_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// An agent is killed 22 s after the announcement, in the second bucket. The next one starts at 25 s. It admits no pod, kills
// only etcd, with the 5 s that its bucket still has, and ends the drain at 30 s, as planned. It does so with a host that
// announces, and also without a source, where Trigger announces.
func TestAKilledAgentResumesWithTheSecondBucket(t *testing.T) {
	for name, hasSource := range map[string]bool{"with a source": true, "without a source": false} {
		t.Run(name, func(t *testing.T) {
			inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
				if !hasSource {
					n.opts.Source = nil
				}
				n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
				n.runOnBoot(one)
				began := time.Now()
				event := source.Event{Kind: source.KindReboot, Origin: "test"}
				if hasSource {
					n.host.Announce(event)
				} else {
					require.NoError(t, n.m.Trigger(event))
				}
				n.advance(22 * time.Second)
				require.Len(t, n.killer.Kills(), 2)
				n.crash()

				n.setPods(n.pods[1]) // web has ended
				n.advance(3 * time.Second)
				n.runOnBoot(one)
				require.False(t, n.m.Admit(nil).Admit)
				require.Equal(t, map[string]int64{"etcd": 5}, n.grantedSeconds())
				require.Zero(t, n.lastReport().Ended, "etcd is still terminating")
				require.Equal(t, slices.Repeat([]string{"Normal Shutdown Shutdown manager detected shutdown event"}, 2), n.events.all(), "one of each agent")
				n.advance(time.Minute)
				kill, _ := n.killer.Kill("etcd")
				require.Equal(t, 30*time.Second, kill.Ended.Sub(began), "the same end")
				report := n.lastReport()
				require.Equal(t, source.KindReboot, report.Kind)
				require.Equal(t, "test", report.Origin)
				require.True(t, began.Equal(report.Started))
				require.Equal(t, []string{"web", "etcd"}, names(report))
			})
		})
	}
}

// A resumed drain calls Prepare again, because the new agent could start pods too, but not Hold. The buckets keep their
// ends: Prepare and Hold return at once and leave their 2 s + 10 s to web, whose 20 s become 32 s. The next agent
// starts after 30 s, when web still has 2 s.
func TestAResumedDrainRepeatsPrepareButNotHold(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		prepared, held := 0, 0
		n.opts.Prepare = func(context.Context) error { prepared++; return nil }
		n.opts.Hold = func(context.Context) error { held++; return nil }
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		n.host.Announce(source.Event{Deadline: time.Now().Add(50 * time.Second)})
		n.advance(time.Second)
		require.Equal(t, map[string]int64{"web": 32}, n.grantedSeconds())
		n.crash()
		n.advance(29 * time.Second)
		n.runOnBoot(one)
		n.advance(time.Minute)
		require.Equal(t, map[string]int64{"web": 2, "etcd": 10}, n.grantedSeconds())
		require.Equal(t, []int{2, 1}, []int{prepared, held})
	})
}

// A host may announce a shutdown whose deadline is as late as a time.Duration allows, 292 years. The next
// agent, 22 s later, resumes it: etcd has 8 s left of the 30 s of both buckets.
func TestAShutdownWithoutALimitIsResumed(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		n.host.Announce(source.Event{Deadline: time.Now().Add(math.MaxInt64)})
		n.advance(22 * time.Second)
		n.crash()
		n.setPods(n.pods[1]) // web has ended
		n.runOnBoot(one)
		require.Equal(t, map[string]int64{"etcd": 8}, n.grantedSeconds())
	})
}

// inBubbleAfterCrash runs a test on a node whose agent was killed 22 s after the announcement of a shutdown.
// web has ended, and etcd has until 31 s: the first bucket has 20 s and 1 s for final statuses, the second
// one 10 s. The state log has the unfinished shutdown, whose drain would wait until 34 s: 1 s more for the second bucket's
// statuses, and 2 s for containers that have used up their grace period.
func inBubbleAfterCrash(t *testing.T, test func(t *testing.T, n *node, boot *boot)) {
	t.Helper()
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter, n.opts.Plan.PublishTimeout = flusher{reporter}, -1
		n.runOnBoot(one)
		n.host.Announce(source.Event{Kind: source.KindReboot})
		n.advance(22 * time.Second)
		n.crash()
		test(t, n, one)
	})
}

// The next agent has the lock of the previous one, but cannot reach the host, and does not know whether the shutdown is
// still pending. After 5 s, 27 s after the announcement, it resumes the shutdown: etcd has 4 s left.
func TestAnAgentThatHasTheLockResumesWithoutTheHost(t *testing.T) {
	inBubbleAfterCrash(t, func(t *testing.T, n *node, boot *boot) {
		n.host.Script(func(h *shutdowntest.Host) { h.StoredLock, h.ConnectErr = true, errors.New("no bus") })
		n.setPods(n.pods[1]) // web has ended
		n.runOnBoot(boot)
		n.advance(5*time.Second - time.Millisecond)
		require.Empty(t, n.killer.Kills())
		n.advance(time.Millisecond)
		require.Equal(t, map[string]int64{"etcd": 4}, n.grantedSeconds())
	})
}

// Trigger has announced a shutdown. The next agent, 2 s later, cannot reach the host and has no lock. After 5 s it resumes the
// drain nevertheless, because the host has announced nothing: web has 13 s left of its 20 s.
func TestADrainOfTriggerIsResumedWithoutTheHost(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		require.NoError(t, n.m.Trigger(source.Event{}))
		n.advance(2 * time.Second)
		n.crash()
		n.host.Script(func(h *shutdowntest.Host) { h.ConnectErr = errors.New("no bus") })
		n.runOnBoot(one)
		n.advance(5 * time.Second)
		require.Equal(t, map[string]int64{"web": 13}, n.grantedSeconds())
		n.advance(time.Minute)
		require.Equal(t, []string{"web", "etcd"}, names(n.lastReport()))
	})
}

// The next agent, at 2 s, cannot reach the host. Trigger cancels its shutdown, which nobody else has announced: pods are
// admitted at once, and web keeps the 18 s that are left of its 20 s. The agent after that one, at 3 s, finds a cancelled
// shutdown in the log, and web has 17 s left.
func TestTriggerCancelsTheShutdownOfAPreviousAgent(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		require.NoError(t, n.m.Trigger(source.Event{}))
		n.advance(2 * time.Second)
		n.crash()
		n.host.Script(func(h *shutdowntest.Host) { h.ConnectErr = errors.New("no bus") })
		n.runOnBoot(one)
		require.False(t, n.m.Admit(nil).Admit)
		require.NoError(t, n.m.Trigger(source.Event{Cancelled: true}))
		require.True(t, n.m.Admit(nil).Admit)
		n.advance(time.Second)
		require.Equal(t, map[string]int64{"web": 18}, n.grantedSeconds())
		n.crash()
		n.runOnBoot(one)
		require.True(t, n.lastReport().Cancelled)
		require.True(t, n.m.Admit(nil).Admit)
		require.Equal(t, map[string]int64{"web": 17}, n.grantedSeconds())
	})
}

// The next agent cannot reach the host. It waits for the host until the drain of the first agent would have stopped waiting,
// and does not continue that drain. The report says that the shutdown was cancelled, because not all pods were told to stop.
func TestADrainThatIsNotContinuedCountsAsCancelled(t *testing.T) {
	inBubbleAfterCrash(t, func(t *testing.T, n *node, boot *boot) {
		reports := make(chan shutdown.Report, 9)
		n.opts.OnReport = func(_ context.Context, r shutdown.Report) { reports <- r }
		n.host.Script(func(h *shutdowntest.Host) { h.ConnectErr = errors.New("no bus") })
		n.runOnBoot(boot)
		n.advance(12 * time.Second) // the crash was at 22 s: 22 s + 12 s = 34 s
		n.advance(time.Minute)      // etcd does not end, and the report waits for its grace period
		require.Len(t, reports, 1)
		require.True(t, (<-reports).Cancelled)
	})
}

// Before Run, pods are refused while the shutdown in the log may be resumed: until 34 s after its announcement, when its
// drain would stop waiting. From then on only etcd (pods[1]), which was signalled, is refused, and a pod that the log does
// not name (nil) is admitted.
func TestPodsAreRefusedBeforeRunWhileAShutdownMayGoOn(t *testing.T) {
	inBubbleAfterCrash(t, func(t *testing.T, n *node, boot *boot) {
		m, err := shutdown.NewManagerOn(n.opts, boot.sinceBoot)
		require.NoError(t, err)
		require.False(t, m.Admit(nil).Admit)
		n.advance(12*time.Second - time.Millisecond) // the crash was at 22 s: 22 s + 12 s = 34 s
		require.False(t, m.Admit(nil).Admit)
		n.advance(time.Millisecond)
		require.True(t, m.Admit(nil).Admit)
		require.False(t, m.Admit(n.pods[1]).Admit)
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

// Deadlines in the state files count from the boot, so a step of the wall clock does not move them. The agent was killed
// 22 s after the announcement, and is killed again at 25 s; agents start at 25 s and at 28 s. Before each start the
// test moves the dates in the files by step, as if the wall clock had been stepped. etcd has until 31 s, so that it gets
// 6 s, then 3 s. Only the date in the report has moved, by both steps.
func TestWallClockStepsDoNotMoveDeadlines(t *testing.T) {
	for _, step := range []time.Duration{0, -time.Hour, time.Hour} {
		t.Run("step of "+step.String(), func(t *testing.T) {
			inBubbleAfterCrash(t, func(t *testing.T, n *node, boot *boot) {
				began := time.Now().Add(-22 * time.Second)
				n.setPods(n.pods[1])                 // web has ended
				for _, left := range []int64{6, 3} { // of the 31 s that etcd has
					n.moveStoredDates(step)
					n.advance(3 * time.Second)
					n.runOnBoot(boot)
					require.Equal(t, map[string]int64{"etcd": left}, n.grantedSeconds())
					if left == 6 {
						n.crash()
					}
				}
				n.advance(time.Minute)
				kill, _ := n.killer.Kill("etcd")
				require.Equal(t, 31*time.Second, kill.Ended.Sub(began))
				require.True(t, began.Add(2*step).Equal(n.lastReport().Started), "the stored date")
				require.Equal(t, []string{"web", "etcd"}, names(n.lastReport()))
			})
		})
	}
}

// An agent dies 500 ms after the announcement, while it marks web as not ready, which takes 900 ms. The shutdown is
// cancelled before the next agent has marked or killed a pod. The next agent restores the readiness of both pods: it knows
// the mark of web from the log, and that of etcd from the pod's condition in the list.
func TestTheNextAgentRestoresReadiness(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		reporter := &shutdowntest.Reporter{MarkTakes: 900 * time.Millisecond}
		n.opts.Reporter = reporter
		n.runOnBoot(one)
		n.announce()
		n.advance(500 * time.Millisecond)
		n.crash()
		podcondition.Set(&n.pods[1].Status, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: v1.PodReasonTerminationByKubelet}, metav1.Now())
		n.opts.ListPods = func(context.Context) ([]*v1.Pod, error) {
			<-time.After(100 * time.Millisecond) // so that the API server has accepted the node's state before
			return n.currentPods(), nil
		}
		n.runOnBoot(one)
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
