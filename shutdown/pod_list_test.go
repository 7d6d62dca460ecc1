//go:build go1.25

package shutdown_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// During the first bucket of a drain pods appear, end, and change their priority. The second bucket kills all pods that are listed
// when it begins and were not killed yet, whatever their priority.
func TestABucketKillsThePodsThatAreListedWhenItBegins(t *testing.T) {
	low, rises := shutdowntest.Pod("low", regularPriority, 60), shutdowntest.Pod("rises", regularPriority, 60)
	stays, ends, falls := shutdowntest.Pod("stays", criticalPriority, 60), shutdowntest.Pod("ends", criticalPriority, 60), shutdowntest.Pod("falls", criticalPriority, 60)
	inBubble(t, list(low, rises, stays, ends, falls), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 5 * time.Second}
		n.run()
		n.announce()
		require.Equal(t, map[string]int64{"low": 20, "rises": 20}, n.grantedSeconds(), "the first bucket")

		// Before the second bucket the two priorities change, a pod ends, another one has the name of low, and a pod is new.
		higher, lower := rises.DeepCopy(), falls.DeepCopy()
		higher.Spec.Priority, lower.Spec.Priority = ptr.To(criticalPriority), ptr.To(regularPriority)
		n.setPods(higher, stays, lower, newPodUnderTheName(low), shutdowntest.Pod("late", regularPriority, 2))
		n.advance(time.Minute)
		var killed []types.UID
		for _, kill := range n.killer.Kills() {
			killed = append(killed, kill.Pod.UID)
		}
		require.ElementsMatch(t, []types.UID{"uid-low", "uid-rises", "uid-stays", "uid-falls", "uid-low-again", "uid-late"}, killed, "each of them once, and not ends")
		require.Len(t, n.lastReport().Pods, 6)
	})
}

// newPodUnderTheName returns a pod with the name of another pod and a new UID.
func newPodUnderTheName(pod *v1.Pod) *v1.Pod {
	other := pod.DeepCopy()
	other.UID += "-again"
	return other
}

var errNotSynced = errors.New("the informer is not synced")

// ListPods fails, panics or hangs when the drain begins. The kill of web, in the first bucket of 20 s, waits for a list, and web loses
// the time of the wait. etcd keeps the 10 s of the second bucket. The report has the error.
func TestAListThatIsNotReadyDelaysTheFirstBucket(t *testing.T) {
	for name, test := range map[string]struct {
		pods   func(n *node, began time.Time, testEnds <-chan struct{}) ([]*v1.Pod, error)
		killed time.Duration // when web is killed, after the announcement; it ends a second later
		web    int64         // the grace period of web, in whole seconds
		err    string
	}{
		"panics for 200 ms": {pods: func(n *node, began time.Time, _ <-chan struct{}) ([]*v1.Pod, error) {
			if time.Since(began) < 200*time.Millisecond {
				panic("not made yet")
			}
			return n.currentPods(), nil
		}, killed: (50 + 100 + 200) * time.Millisecond /* three growing pauses */, web: 19 /* of 19.65 s */, err: "the list of the pods failed: Options.ListPods panicked: not made yet"},
		"is not complete for 3 s": {pods: func(n *node, began time.Time, _ <-chan struct{}) ([]*v1.Pod, error) {
			if time.Since(began) < 3*time.Second {
				return nil, errNotSynced
			}
			return n.currentPods(), nil
		}, killed: 3 * time.Second, web: 20 - 3, err: "the list of the pods failed: the informer is not synced"},
		"hangs, and is called again after 1 s": {pods: func(n *node, began time.Time, testEnds <-chan struct{}) ([]*v1.Pod, error) {
			if time.Since(began) < time.Second {
				<-testEnds
			}
			return n.currentPods(), nil
		}, killed: time.Second, web: 20 - 1, err: "the list of the pods did not return in time"},
		"takes 5 s": {pods: func(n *node, began time.Time, _ <-chan struct{}) ([]*v1.Pod, error) {
			if time.Since(began) < 4*time.Second {
				<-time.After(5 * time.Second)
			}
			return n.currentPods(), nil
		}, killed: 5 * time.Second /* a late list counts */, web: 20 - 5, err: "the list of the pods did not return in time"},
	} {
		subtestInBubble(t, name, webAndEtcd(), func(t *testing.T, n *node) {
			testEnds := make(chan struct{})
			var announced atomic.Pointer[time.Time] // when the shutdown was announced; nil: not yet
			n.opts.ListPods = func(context.Context) ([]*v1.Pod, error) {
				if began := announced.Load(); began != nil {
					return test.pods(n, *began, testEnds)
				}
				return n.currentPods(), nil
			}
			n.killer.Default = shutdowntest.Behaviour{Takes: time.Second}
			n.run()
			began := time.Now()
			announced.Store(&began)
			n.announce()
			n.advance(time.Minute)
			close(testEnds)
			require.Equal(t, test.killed, n.killedAfter("web", began))
			require.Equal(t, test.killed+time.Second, n.killedAfter("etcd", began))
			require.Equal(t, test.web, n.grantedSeconds()["web"])
			require.GreaterOrEqual(t, n.grantedSeconds()["etcd"], int64(10))
			require.Equal(t, []string{test.err}, n.lastReport().Errors)
		})
	}
}

// web and etcd end at once, and the pod late is listed for the first time after the last bucket has begun. It gets the time
// that is left, 30 s. 5 s later the host announces that it shuts down in 10 s. The pod is killed again with these 10 s, and
// ends at 5 s + 10 s = 15 s.
func TestAnEarlierDeadlineAppliesToAPodThatIsListedLast(t *testing.T) {
	inBubble(t, webAndEtcd(), func(t *testing.T, n *node) {
		n.killer.OnKill = func(pod *v1.Pod) {
			if pod.Name == "etcd" {
				n.setPods(shutdowntest.Pod("late", regularPriority, 60))
			}
		}
		n.killer.Pods = map[string]shutdowntest.Behaviour{"late": {Takes: time.Hour}}
		n.run()
		began := time.Now()
		require.NoError(t, n.m.Trigger(source.Event{}))
		n.advance(5 * time.Second)
		require.Equal(t, int64(30), n.grantedSeconds()["late"])
		n.host.Announce(source.Event{Deadline: time.Now().Add(10 * time.Second)})
		n.advance(time.Minute)
		require.Equal(t, int64(10), n.grantedSeconds()["late"])
		require.Equal(t, (5+10)*time.Second, n.endedAfter("late", began))
	})
}

// Options.Plan.PriorityOf says that the class gold is critical. vault is killed with the second bucket, after the 5 s that web
// takes.
func TestPriorityOfDecidesTheBucket(t *testing.T) {
	vault := shutdowntest.Pod("vault", regularPriority, 60)
	vault.Spec.Priority, vault.Spec.PriorityClassName = nil, "gold"
	inBubble(t, list(shutdowntest.Pod("web", regularPriority, 60), vault), func(t *testing.T, n *node) {
		n.opts.Plan.PriorityOf = func(class string) (int32, bool) { return criticalPriority, class == "gold" }
		n.killer.Default = shutdowntest.Behaviour{Takes: 5 * time.Second}
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, 5*time.Second, n.killedAfter("vault", began))
	})
}

// Without pods the lock is released at once.
func TestWithoutPodsTheLockIsReleasedAtOnce(t *testing.T) {
	inBubble(t, noPods(), func(t *testing.T, n *node) {
		n.run()
		n.advance(time.Second) // before that, the list may not be filled yet
		began := time.Now()
		n.announce()
		require.Zero(t, n.releasedAfter(began))
		require.Error(t, n.m.ShutdownStatus(), "the node is still shutting down")
	})
}

// In the first second of an agent an empty list may not have been filled yet. The drain reads such a list again at the end
// of that second, and kills the pods that were added since.
func TestAListThatIsEmptyAtFirstIsReadAgain(t *testing.T) {
	inBubble(t, noPods(), func(t *testing.T, n *node) {
		n.run()
		began := time.Now()
		n.announce()
		n.advance(200 * time.Millisecond)
		n.setPods(webAndEtcd()...)
		n.advance(time.Minute)
		require.Equal(t, time.Second, n.killedAfter("web", began))
		require.Len(t, n.killer.Kills(), 2)
	})
}
