//go:build go1.25

package shutdown_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// newPodUnderTheName returns a pod with the name of another pod and a new UID.
func newPodUnderTheName(pod *v1.Pod) *v1.Pod {
	other := pod.DeepCopy()
	other.UID += "-again"
	return other
}

// The list of pods and their priorities change during a drain. Each bucket kills the pods that
// the list has when the bucket begins, and each pod is killed once.
func TestPodsChangeDuringTheDrain(t *testing.T) {
	low, stays := shutdowntest.Pod("low", 0, 60), shutdowntest.Pod("stays", topPriority, 60)
	vanishes, rises, falls := shutdowntest.Pod("vanishes", topPriority, 60), shutdowntest.Pod("rises", 0, 60), shutdowntest.Pod("falls", topPriority, 60)
	inBubble(t, list(low, nil, stays, low, vanishes, rises, falls, stays.DeepCopy()), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 5 * time.Second}
		n.run()
		n.announce()
		require.Equal(t, map[string]int64{"low": 20, "rises": 20}, n.grantedSeconds())
		require.Len(t, n.killer.Kills(), 2, "each pod once")
		deleted := stays.DeepCopy()
		deleted.DeletionTimestamp, deleted.DeletionGracePeriodSeconds = ptr.To(metav1.Now()), ptr.To(int64(3))
		higher, lower := rises.DeepCopy(), falls.DeepCopy()
		higher.Spec.Priority, lower.Spec.Priority = ptr.To(topPriority), ptr.To(int32(0))
		n.setPods(higher, nil, newPodUnderTheName(low), deleted, lower, deleted, shutdowntest.Pod("late", 0, 2))
		n.advance(time.Minute)
		kills := n.killer.Kills()
		require.Len(t, kills, 6)
		uids := map[types.UID]bool{}
		for _, kill := range kills {
			uids[kill.Pod.UID] = true
		}
		require.Equal(t, map[types.UID]bool{"uid-low": true, "uid-rises": true, "uid-low-again": true, "uid-stays": true, "uid-falls": true, "uid-late": true}, uids)
		require.Len(t, n.lastReport().Pods, 6)
		for _, pod := range n.lastReport().Pods {
			require.NotZero(t, pod.Ended, pod.Name)
		}
	})
}

// A new pod that has the name of a killed one, and is killed by the next agent, does not replace
// the killed one in the report.
func TestReportOfAPodThatCameBackAfterARestart(t *testing.T) {
	inBubbleAfterCrash(t, func(t *testing.T, n *node, boot *boot) {
		web := n.pods[0]
		n.setPods(newPodUnderTheName(web), n.pods[1])
		n.runOnBoot(boot)
		n.advance(time.Minute)
		var uids []types.UID
		for _, pod := range n.lastReport().Pods {
			uids = append(uids, pod.UID)
		}
		require.ElementsMatch(t, []types.UID{"uid-web", "uid-web-again", "uid-etcd"}, uids)
	})
}

// bytesOfADrain drains a node with so many pods of one priority, through a terminator whose
// containers take a second to stop. It returns how many bytes the drain has allocated.
func bytesOfADrain(t *testing.T, pods int) (bytes uint64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var crowd []*v1.Pod
		rt := lifecycletest.NewRuntime()
		for i := range pods {
			pod := shutdowntest.Pod(fmt.Sprint("pod-", i), 0, 30)
			pod.Spec.Containers = []v1.Container{{Name: "app"}}
			rt.Start(string(pod.UID), lifecycletest.Script{ExitAfterTerm: time.Second})
			crowd = append(crowd, pod)
		}
		terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: rt, Exits: rt})
		require.NoError(t, err)
		n := newNode(t, crowd)
		n.opts.Killer = podkiller.New(terminator, podkiller.Options{
			Containers: func(_ context.Context, pod *v1.Pod) []lifecycle.Container {
				return []lifecycle.Container{{Name: "app", ID: string(pod.UID)}}
			},
		})
		n.opts.Events = nil
		n.run()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		runtime.ReadMemStats(&after)
		require.Equal(t, time.Second, n.releasedAfter(began))
		report := n.lastReport()
		require.Len(t, report.Pods, pods)
		for _, pod := range report.Pods {
			require.True(t, pod.Started.Equal(began), pod.Name)
			require.True(t, pod.Ended.Equal(began.Add(time.Second)), pod.Name)
			require.Equal(t, "Graceful", pod.Outcome)
			require.EqualValues(t, 20, pod.GrantedSeconds)
		}
		require.Len(t, rt.Signals(), pods, "one signal each")
		n.end()
		require.NoError(t, terminator.Close(t.Context()))
		bytes = after.TotalAlloc - before.TotalAlloc
	})
	return bytes
}

// Ten thousand pods of one priority are all signalled at the same moment, and their ends are
// noticed at the same moment. The allocated memory grows in proportion to the number of pods.
func TestManyPodsOfOnePriority(t *testing.T) {
	few, many := bytesOfADrain(t, 1000), bytesOfADrain(t, 10_000)
	t.Logf("%d bytes for each of 1,000 pods, %d for each of 10,000", few/1000, many/10_000)
	require.Less(t, many, 15*few)
}

// A static pod is started again, under the same UID, after a cancelled shutdown. The next
// shutdown kills it with its whole grace period, whether the agent has called Forget of the
// terminator or not.
func TestPodWhoseUIDIsUsedAgain(t *testing.T) {
	for _, forgets := range []bool{true, false} {
		t.Run(fmt.Sprintf("forgotten: %t", forgets), func(t *testing.T) {
			static := shutdowntest.Pod("static", 0, 10)
			static.Spec.Containers = []v1.Container{{Name: "app"}}
			inBubble(t, list(static), func(t *testing.T, n *node) {
				rt := lifecycletest.NewRuntime()
				terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: rt, Exits: rt})
				require.NoError(t, err)
				id := ""
				start := func(next string) {
					id = next
					rt.Start(id, lifecycletest.Script{ExitAfterTerm: 7 * time.Second})
				}
				start("first")
				n.opts.Killer = podkiller.New(terminator, podkiller.Options{
					Containers: func(context.Context, *v1.Pod) []lifecycle.Container {
						return []lifecycle.Container{{Name: "app", ID: id}}
					},
				})
				n.run()
				for round, next := range []string{"second", "third", ""} {
					began := time.Now()
					n.announce()
					n.advance(8 * time.Second)
					report := n.lastReport()
					require.Len(t, report.Pods, 1)
					require.Equal(t, "Graceful", report.Pods[0].Outcome)
					require.EqualValues(t, 10, report.Pods[0].GrantedSeconds)
					require.Equal(t, 7*time.Second, report.Pods[0].Ended.Sub(began), "round %d", round)
					require.Len(t, rt.Exits(), round+1)
					require.Equal(t, lifecycletest.ByTerm, rt.Exits()[round].By)
					n.host.Cancel()
					synctest.Wait()
					require.True(t, n.m.Admit(static).Admit)
					if forgets {
						terminator.ForgetPod(static.UID)
					}
					n.advance(time.Minute)
					start(next)
				}
				require.NoError(t, terminator.Close(t.Context()))
			})
		})
	}
}

// A pod that is started again under its UID during the shutdown, although Admit refuses it, is
// not killed a second time. The report has the pod that was killed.
func TestPodWhoseUIDIsUsedAgainWithinTheShutdown(t *testing.T) {
	web := shutdowntest.Pod("web", 0, 10)
	inBubble(t, list(web, shutdowntest.Pod("etcd", topPriority, 10)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 3 * time.Second}
		n.run()
		n.announce()
		n.advance(4 * time.Second)
		require.False(t, n.m.Admit(web).Admit)
		n.setPods(web.DeepCopy(), n.pods[1])
		n.advance(time.Minute)
		require.Len(t, n.killer.Kills(), 2)
		require.Len(t, n.lastReport().Pods, 2)
	})
}

// A pod that is first listed before the release is killed with what is left, also where the last
// bucket has no time.
func TestPodThatIsListedAtTheEndAfterABucketWithoutTime(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node) {
		n.opts.Config = config(0, 0, priorityPeriod(0, 20), priorityPeriod(topPriority, 0))
		n.killer.Default = shutdowntest.Behaviour{Takes: 5 * time.Second}
		lists := 0
		n.opts.Pods = func(context.Context) ([]*v1.Pod, error) {
			if lists++; lists > 3 { // after those of the timetable and of both buckets
				return append(n.currentPods(), shutdowntest.Pod("late", 0, 60)), nil
			}
			return n.currentPods(), nil
		}
		n.run()
		lists = 0
		n.announce()
		n.advance(10 * time.Second)
		require.EqualValues(t, 15, n.grantedSeconds()["late"])
		require.Equal(t, "Graceful", outcomes(n.lastReport())["late"])
	})
}
