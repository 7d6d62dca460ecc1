package nodeshutdown

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// Each test in this file shows a row of the table of differences in internal/fork/README.md.

// The lowest priorities of critical and of other pods.
const (
	critical = 2000000000
	regular  = 0
)

// longPod returns a pod with a grace period of 60 s, which is longer than the time of any bucket here: a drain gives it all
// the time of its bucket.
func longPod(name string, priority int32) *v1.Pod { return shutdowntest.Pod(name, priority, 60) }

// shortPod returns a pod with a grace period of 5 s, which is shorter than the time of any bucket here.
func shortPod(name string, priority int32) *v1.Pod { return shutdowntest.Pod(name, priority, 5) }

// startAndAnnounce starts a manager and announces a shutdown.
func (k *kubelet) startAndAnnounce(t *testing.T, conf *Config) Manager {
	t.Helper()
	m := k.start(t, conf)
	synctest.Wait()
	k.host.Announce(source.Event{Kind: source.KindPoweroff})
	synctest.Wait()
	return m
}

// defaultConfig returns a configuration with 20 s for pods and then 10 s for critical ones.
func (k *kubelet) defaultConfig() *Config { return k.config(30*time.Second, 10*time.Second) }

// killed returns the last grace period of each pod that was killed so far, by the pod's name.
func (k *kubelet) killed() map[string]int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	kills := map[string]int64{}
	for name, seconds := range k.kills {
		kills[name] = seconds
	}
	return kills
}

// setPods replaces the pods of the node.
func (k *kubelet) setPods(pods ...*v1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods = pods
}

// configWithSlowKills returns defaultConfig, but each kill takes d.
func (k *kubelet) configWithSlowKills(d time.Duration) *Config {
	conf := k.defaultConfig()
	conf.KillPodFunc = func(pod *v1.Pod, evict bool, grace *int64, fn func(*v1.PodStatus)) error {
		err := k.killPod(pod, evict, grace, fn)
		select {
		case <-time.After(d):
		case <-k.stopped:
		}
		return err
	}
	return conf
}

// The shutdown is cancelled while the pod web is being killed, which takes 15 s of the 20 s that its bucket has. The
// manager admits pods at once. In the next minute it does not kill the critical pod dns, which would have been next, and at
// its end it holds a lock again.
func TestACancelledShutdownTakesANewLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet(longPod("web", regular), longPod("dns", critical))
		m := k.startAndAnnounce(t, k.configWithSlowKills(15*time.Second))
		require.Error(t, m.ShutdownStatus())
		k.host.Cancel()
		synctest.Wait()
		require.NoError(t, m.ShutdownStatus())
		require.True(t, admits(m))
		advance(time.Minute)
		require.Equal(t, map[string]int64{"web": 20}, k.killed())
		require.Equal(t, 1, k.host.Held())
	})
}

// The pod web is being killed with a grace period of 20 s, after which the critical pod dns would be killed. Then the host
// announces that it goes down in 9 s. The drain is shortened to fit into the 9 s: after 8.5 s dns is being killed, and
// after 9 s the lock is released.
func TestAnEarlierDeadlineShortensTheDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet(longPod("web", regular), longPod("dns", critical))
		k.startAndAnnounce(t, k.configWithSlowKills(time.Hour))
		require.Equal(t, map[string]int64{"web": 20}, k.killed())
		k.host.Announce(source.Event{Kind: source.KindPoweroff, Deadline: time.Now().Add(9 * time.Second)})
		advance(8500 * time.Millisecond)
		require.Contains(t, k.killed(), "dns")
		advance(500 * time.Millisecond)
		require.Zero(t, k.host.Held())
	})
}

// The first two kills of a pod fail. The kill is repeated every second, with what remains of the grace period of 20 s.
func TestAFailedKillIsRepeatedWithTheRemainingTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet(longPod("web", regular))
		conf := k.defaultConfig()
		var graces []int64
		conf.KillPodFunc = func(_ *v1.Pod, _ bool, grace *int64, _ func(*v1.PodStatus)) error {
			if graces = append(graces, *grace); len(graces) < 3 {
				return errors.New("the runtime is unavailable")
			}
			return nil
		}
		k.startAndAnnounce(t, conf)
		advance(time.Minute)
		require.Equal(t, []int64{20, 19, 18}, graces)
	})
}

// The kill takes an hour and the shutdown 30 s, so the pod may still run when the lock is released. Its status is
// Failed anyway, because the kubelet sets the status when it begins a kill.
func TestAPodThatMayStillRunIsFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet(longPod("web", regular))
		k.startAndAnnounce(t, k.configWithSlowKills(time.Hour))
		advance(time.Minute)
		require.Zero(t, k.host.Held())
		require.Equal(t, v1.PodFailed, k.pods[0].Status.Phase)
	})
}

// The kubelet itself sends the final statuses of pods and marks pods as not ready. So the fork's reporter has the
// method for neither.
func TestStatusesAndReadinessAreLeftToTheKubelet(t *testing.T) {
	reporter := nodeStatus(newKubelet().defaultConfig())
	_, sendsStatuses := reporter.(shutdown.StatusFlusher)
	_, marksReadiness := reporter.(shutdown.ReadinessMarker)
	require.False(t, sendsStatuses)
	require.False(t, marksReadiness)
}

// The pod web is being killed, which takes 5 s, when the kubelet's list has the pod late for the first time. The pod late is
// killed too.
func TestAPodThatIsListedLateIsKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := longPod("web", regular)
		k := newKubelet(web)
		k.startAndAnnounce(t, k.configWithSlowKills(5*time.Second))
		k.setPods(web, longPod("late", regular))
		advance(time.Minute)
		require.Contains(t, k.killed(), "late")
	})
}

// The kubelet lists no pods when the shutdown is announced, and a pod immediately afterwards. An empty first list may
// be that of an informer that is not filled yet, so the manager lists once more, a second after its start, and kills the
// pod.
func TestAListThatIsEmptyAtTheStartIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet()
		k.startAndAnnounce(t, k.defaultConfig())
		k.setPods(longPod("web", regular))
		advance(time.Minute)
		require.Contains(t, k.killed(), "web")
	})
}

// A static pod has the class system-node-critical but no priority, because only the API server resolves classes. The
// manager uses the priority of the class: it kills the pod as a critical one, after web, which has the 20 s of the pods
// that are not critical.
func TestTheClassNameOfAStaticPodIsResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		static := longPod("etcd", regular)
		static.Spec.Priority, static.Spec.PriorityClassName = nil, "system-node-critical"
		k := newKubelet(longPod("web", regular), static)
		k.startAndAnnounce(t, k.configWithSlowKills(5*time.Second))
		require.Equal(t, map[string]int64{"web": 20}, k.killed())
		advance(time.Minute)
		require.Contains(t, k.killed(), "etcd")
	})
}

// A kubelet stops 2 s after the announcement, while it kills web, which has 20 s and takes longer (25 s). The next kubelet
// reads the state file. It refuses pods even before its manager is started. After the start it resumes the drain, so that
// dns, whose turn comes after web's, is killed.
func TestARestartedKubeletResumesTheDrain(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet(longPod("web", regular), longPod("dns", critical))
		conf := k.configWithSlowKills(25 * time.Second)
		conf.StateDirectory = dir
		m := newManagerOfHost(conf, k.host)
		stop := k.startManager(t, m)
		k.host.Announce(source.Event{Kind: source.KindPoweroff})
		advance(2 * time.Second)
		stop()
		advance(time.Second)
		require.Equal(t, map[string]int64{"web": 20}, k.killed())

		next := newManagerOfHost(conf, k.host)
		require.False(t, admits(next))
		require.Error(t, next.ShutdownStatus())
		stop = k.startManager(t, next)
		advance(time.Minute)
		require.Contains(t, k.killed(), "dns")
		stop()
		advance(time.Minute)
	})
}

// The drain uses the clock of the Config. When 10 s pass on the bubble's clock, nothing changes. When the Config's
// clock advances by 21 s, web's 20 s are over, and dns has what is left of 30 s: 9 s.
func TestTheConfigsClockTimesTheDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet(longPod("web", regular), longPod("dns", critical))
		conf := k.configWithSlowKills(time.Hour)
		clock := clocktesting.NewFakeClock(time.Now())
		conf.Clock = clock
		k.startAndAnnounce(t, conf)
		advance(10 * time.Second)
		require.Equal(t, map[string]int64{"web": 20}, k.killed())
		clock.Step(21 * time.Second)
		synctest.Wait()
		require.Equal(t, map[string]int64{"web": 20, "dns": 9}, k.killed())
	})
}
