//go:build go1.25

package shutdown_test

import (
	"testing"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// web ends after 4 s of its bucket's 20 s. The other 16 s go to the next bucket: etcd gets 26 s instead of 10
// s, unless NoRollOver is set. proxy has no grace period, and gets no more than the 10 s of its bucket.
func TestUnusedTimeOfABucketRollsOver(t *testing.T) {
	for _, test := range []struct {
		name       string
		noRollOver bool
		granted    map[string]int64
		released   time.Duration
	}{
		{"on", false, map[string]int64{"web": 20, "etcd": 26, "proxy": 10}, 30 * time.Second},
		{"off", true, map[string]int64{"web": 20, "etcd": 10, "proxy": 10}, 14 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			pods := []*v1.Pod{
				shutdowntest.Pod("web", 0, -1),
				shutdowntest.Pod("etcd", topPriority, 60),
				shutdowntest.Pod("proxy", topPriority, -1),
			}
			inBubble(t, pods, func(t *testing.T, n *node) {
				n.opts.Plan.NoRollOver = test.noRollOver
				n.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Takes: 4 * time.Second}, "etcd": {Takes: time.Hour}}
				n.run()
				began := time.Now()
				n.announce()
				n.advance(time.Minute)
				require.Equal(t, test.granted, n.grantedSeconds())
				require.Equal(t, test.released, n.releasedAfter(began))
			})
		})
	}
}

// The deadline in the event counts, not the granted delay. The buckets share it in proportion, 2:1, if it is
// too short, and the lock is released 100 ms before it. A few milliseconds of transmission cost no pod a
// second. If the deadline has passed, all pods are signalled with 0 s.
func TestTheDeadlineOfTheEventOverridesTheGrantedDelay(t *testing.T) {
	pods := []*v1.Pod{shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("etcd", topPriority, 60)}
	for _, test := range []struct {
		name     string
		deadline time.Duration
		granted  map[string]int64
		released time.Duration
	}{
		{"covers the schedule", 40 * time.Second, map[string]int64{"web": 20, "etcd": 10}, 30 * time.Second},
		{"exactly the schedule, on its way", 30*time.Second - 5*time.Millisecond, map[string]int64{"web": 20, "etcd": 10}, 29895 * time.Millisecond},
		{"shorter", 12 * time.Second, map[string]int64{"web": 8, "etcd": 4}, 11900 * time.Millisecond},
		{"much shorter", 2 * time.Second, map[string]int64{"web": 1, "etcd": 1}, 1900 * time.Millisecond},
		{"over", -time.Second, map[string]int64{"web": 0, "etcd": 0}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, pods, func(t *testing.T, n *node) {
				n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
				n.run()
				began := time.Now()
				n.host.Announce(source.Event{Deadline: began.Add(test.deadline)})
				n.advance(time.Minute)
				require.Equal(t, test.granted, n.grantedSeconds())
				require.Equal(t, test.released, n.releasedAfter(began))
			})
		})
	}
}

// The pods of a bucket of 0 s get 0 s, even if the lower bucket has left its 20 s, and the next bucket does
// not wait for them. etcd gets its own 10 s and these 20 s.
func TestABucketOfZeroSecondsIsKilledAndNotWaitedFor(t *testing.T) {
	pods := []*v1.Pod{shutdowntest.Pod("early", -5, 60), shutdowntest.Pod("web", 0, 5), shutdowntest.Pod("etcd", 10, 60)}
	inBubble(t, pods, func(t *testing.T, n *node) {
		n.opts.Config = config(0, 0, priorityPeriod(10, 10), priorityPeriod(0, 0), priorityPeriod(-10, 20))
		n.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Hangs: true}}
		n.run()
		began := time.Now()
		n.announce()
		require.Zero(t, n.killedAfter("etcd", began), "it does not wait for web")
		require.Equal(t, map[string]int64{"early": 20, "web": 0, "etcd": 30}, n.grantedSeconds())
		n.advance(time.Minute)
		require.Equal(t, 32*time.Second, n.releasedAfter(began), "the end waits for web, which hangs")
	})
}

// Without a configured schedule, a shutdown of Trigger gives each pod its own grace period, or 30 s if it has
// none. Plan says so.
func TestWithoutAScheduleEachPodHasItsOwnGracePeriod(t *testing.T) {
	pods := []*v1.Pod{shutdowntest.Pod("web", 0, 5), shutdowntest.Pod("db", topPriority, 90), shutdowntest.Pod("plain", 0, -1), shutdowntest.Pod("cni", topPriority, 5)}
	inBubble(t, pods, func(t *testing.T, n *node) {
		n.opts.Config = plan.Config{}
		n.opts.Reporter, n.opts.Plan.StatusesTimeout = &shutdowntest.Reporter{}, 1500*time.Millisecond
		n.run()
		require.Empty(t, n.host.Calls(), "nothing is watched")
		want := map[string]int64{"web": 5, "db": 90, "plain": 30, "cni": 5}
		planned := map[string]int64{}
		for _, bucket := range n.m.Plan().Buckets {
			for _, pod := range bucket.Pods {
				planned[pod.Pod.Name] = pod.GrantedSeconds
			}
		}
		require.Equal(t, want, planned)
		require.NoError(t, n.m.Trigger(source.Event{}))
		n.advance(time.Minute)
		require.Equal(t, want, n.grantedSeconds())
	})
}

// The manager does not change the pods of ListPods.
func TestTheManagerDoesNotChangePods(t *testing.T) {
	pod := shutdowntest.Pod("web", 0, 5)
	before := pod.DeepCopy()
	inBubble(t, []*v1.Pod{pod, nil}, func(t *testing.T, n *node) {
		n.run()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, before, pod)
	})
}
