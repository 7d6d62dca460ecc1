//go:build go1.25

package shutdown_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

var errNotSynced = errors.New("the informer is not synced")

// A list of pods that is not ready costs the first bucket what it lasts, and nobody else. The
// report names the fault.
func TestListThatIsNotReady(t *testing.T) {
	began := func(n *node) time.Time { return n.lastReport().Started }
	for name, test := range map[string]struct {
		pods   func(n *node, began time.Time, over <-chan struct{}) ([]*v1.Pod, error)
		killed time.Duration // after the event
		web    int64         // its seconds
		errs   []string
	}{
		"panics for 200 ms": {func(n *node, began time.Time, _ <-chan struct{}) ([]*v1.Pod, error) {
			if time.Since(began) < 200*time.Millisecond {
				panic("not made yet")
			}
			return n.currentPods(), nil
		}, 350 * time.Millisecond, 19, []string{"failed to list the pods: Options.Pods panicked: not made yet"}},
		"is not complete for 3 s": {func(n *node, began time.Time, _ <-chan struct{}) ([]*v1.Pod, error) {
			if time.Since(began) < 3*time.Second {
				return nil, errNotSynced
			}
			return n.currentPods(), nil
		}, 3550 * time.Millisecond, 16, []string{"failed to list the pods: the informer is not synced"}},
		"never returns once": {func(n *node, began time.Time, over <-chan struct{}) ([]*v1.Pod, error) {
			if time.Since(began) < time.Second {
				<-over
			}
			return n.currentPods(), nil
		}, time.Second, 19, []string{"failed to list the pods: the time for it was spent"}},
		"takes 5 s": {func(n *node, began time.Time, _ <-chan struct{}) ([]*v1.Pod, error) {
			if time.Since(began) < 4*time.Second {
				<-time.After(5 * time.Second)
			}
			return n.currentPods(), nil
		}, 4 * time.Second, 16, []string{"failed to list the pods: the time for it was spent"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, twoPods(), func(t *testing.T, n *node) {
				over := make(chan struct{})
				var at atomic.Pointer[time.Time]
				n.opts.Pods = func(context.Context) ([]*v1.Pod, error) {
					if at := at.Load(); at != nil {
						return test.pods(n, *at, over)
					}
					return n.currentPods(), nil
				}
				n.killer.Default = shutdowntest.Behaviour{Takes: time.Second}
				n.run()
				now := time.Now()
				at.Store(&now)
				n.announce()
				n.advance(time.Minute)
				close(over)
				require.Equal(t, test.killed, n.killedAfter("web", began(n)))
				require.Equal(t, test.killed+time.Second, n.killedAfter("etcd", began(n)))
				require.Equal(t, test.web, n.grantedSeconds()["web"])
				require.GreaterOrEqual(t, n.grantedSeconds()["etcd"], int64(10))
				require.Equal(t, test.errs, n.lastReport().Errors)
			})
		})
	}
}

// A list that never becomes ready is waited for as long as its pods would have, and not longer.
func TestListThatIsNeverReady(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.opts.Pods = func(context.Context) ([]*v1.Pod, error) { return nil, errNotSynced }
		n.run()
		began := time.Now()
		n.host.Announce(shutdown.Event{Deadline: began.Add(time.Minute)})
		n.advance(2 * time.Minute)
		require.Equal(t, 31*time.Second, n.releasedAfter(began), "the buckets, and a second for the list before the release")
		require.Equal(t, []string{"failed to list the pods: " + errNotSynced.Error()}, n.lastReport().Errors)
	})
}

// A list that fails in the middle of a drain is asked again, and the last complete one counts.
func TestListThatFailsInTheMiddle(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		var fails atomic.Bool
		n.opts.Pods = func(context.Context) ([]*v1.Pod, error) {
			if fails.Load() {
				return nil, errNotSynced
			}
			return n.currentPods(), nil
		}
		n.killer.Default = shutdowntest.Behaviour{Takes: 5 * time.Second}
		n.run()
		began := time.Now()
		n.announce()
		fails.Store(true)
		n.advance(time.Minute)
		require.Equal(t, 6*time.Second, n.killedAfter("etcd", began), "a second was left to the list")
		require.Equal(t, 12*time.Second, n.releasedAfter(began))
		require.Equal(t, []string{"failed to list the pods: " + errNotSynced.Error()}, n.lastReport().Errors)
	})
}

// A pod that comes while the last bucket drains is killed before the host is let go.
func TestPodThatComesInTheLastBucket(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 5 * time.Second}
		n.run()
		began := time.Now()
		n.announce()
		n.advance(7 * time.Second)
		n.setPods(append(twoPods(), shutdowntest.Pod("late", 0, 30))...)
		n.advance(time.Minute)
		require.Equal(t, 10*time.Second, n.killedAfter("late", began))
		require.Equal(t, 15*time.Second, n.releasedAfter(began))
		require.Equal(t, []string{"web", "etcd", "late"}, names(n.lastReport()))
	})
}

// An agent that is restarted in the middle of a drain finds an empty list for a while. Whom the
// record has as signalled and not ended is killed and awaited all the same, with what is left of
// its own grace, and who was to be killed later is killed.
func TestEmptyListAfterARestart(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 6 * time.Second}
		n.runOnBoot(one)
		began := time.Now()
		n.host.Announce(shutdown.Event{Deadline: began.Add(time.Minute)})
		n.advance(2 * time.Second)
		n.crash()
		pods := n.currentPods()
		n.setPods()
		n.runOnBoot(one)
		synctest.Wait()
		require.Equal(t, map[string]int64{"web": 18}, n.grantedSeconds())
		n.advance(time.Second)
		n.setPods(pods...)
		n.advance(time.Minute)
		require.Equal(t, 8*time.Second, n.killedAfter("etcd", began))
		require.Equal(t, 14*time.Second, n.lastReport().Ended.Sub(began))
		require.Equal(t, []string{"web", "etcd"}, names(n.lastReport()))
	})
}
