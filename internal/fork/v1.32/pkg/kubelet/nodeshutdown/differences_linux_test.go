package nodeshutdown

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// These are rows of README.md's table of differences: what a fork's node does.

const critical = 2000000000

// drained starts a manager with 20 s for pods and 10 s for critical ones, and announces a shutdown.
func (k *kubelet) drained(t *testing.T, conf *Config) Manager {
	t.Helper()
	m, err := k.start(t, conf)
	require.NoError(t, err)
	synctest.Wait()
	k.host.Announce(source.Event{Kind: source.KindPoweroff})
	synctest.Wait()
	return m
}

func (k *kubelet) thirtyTen() *Config { return k.config(30*time.Second, 10*time.Second) }

// killed returns the grace periods of the kills so far.
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

// taking makes the kills of a Config take a while.
func (k *kubelet) taking(d time.Duration) *Config {
	conf := k.thirtyTen()
	conf.GetPodsFunc = func() []*v1.Pod {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.pods
	}
	conf.KillPodFunc = func(pod *v1.Pod, evict bool, grace *int64, fn func(*v1.PodStatus)) error {
		err := k.killPod(pod, evict, grace, fn)
		select {
		case <-time.After(d):
		case <-k.over:
		}
		return err
	}
	return conf
}

// A cancelled shutdown is heard at once. The lock is taken again and kept, and pods are admitted.
func TestCancelledShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("dns", critical, 60))
		m := k.drained(t, k.taking(15*time.Second))
		require.Error(t, m.ShutdownStatus())
		k.host.Cancel()
		synctest.Wait()
		require.NoError(t, m.ShutdownStatus())
		require.True(t, admit(m, nil).Admit)
		advance(time.Minute)
		require.Equal(t, map[string]int64{"web": 20}, k.killed())
		require.Equal(t, 1, k.host.Held())
	})
}

// A second notice that leaves less time begins another drain at once.
func TestSecondNoticeWithLessTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("dns", critical, 60))
		k.drained(t, k.taking(time.Hour))
		require.Equal(t, map[string]int64{"web": 20}, k.killed())
		k.host.Announce(source.Event{Kind: source.KindPoweroff, Deadline: time.Now().Add(9 * time.Second)})
		advance(8500 * time.Millisecond)
		require.Contains(t, k.killed(), "dns")
		advance(time.Second)
		require.Zero(t, k.host.Held())
	})
}

// A kill that fails is tried again every second, with what is left of the grace period.
func TestKillThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet(shutdowntest.Pod("web", 0, 60))
		conf := k.thirtyTen()
		var graces []int64
		conf.KillPodFunc = func(_ *v1.Pod, _ bool, grace *int64, _ func(*v1.PodStatus)) error {
			if graces = append(graces, *grace); len(graces) < 3 {
				return errors.New("the runtime is away")
			}
			return nil
		}
		k.drained(t, conf)
		advance(time.Minute)
		require.Equal(t, []int64{20, 19, 18}, graces)
	})
}

// The status of a pod is the kubelet's from its kill on, also if it may still run when the host goes down.
func TestPodThatMayStillRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet(shutdowntest.Pod("web", 0, 60))
		k.drained(t, k.taking(time.Hour))
		advance(time.Minute)
		require.Zero(t, k.host.Held())
		require.Equal(t, v1.PodFailed, k.pods[0].Status.Phase)
	})
}

// Final statuses and readiness are the kubelet's to send: nothing else of the fork does.
func TestStatusesAreLeftToTheKubelet(t *testing.T) {
	reporter := nodeStatus(newKubelet().thirtyTen())
	_, flushes := reporter.(shutdown.StatusFlusher)
	_, marks := reporter.(shutdown.ReadinessMarker)
	require.False(t, flushes || marks)
}

// A pod that is listed for the first time during the drain is killed too.
func TestPodThatIsListedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := shutdowntest.Pod("web", 0, 60)
		k := newKubelet(web)
		k.drained(t, k.taking(5*time.Second))
		k.setPods(web, shutdowntest.Pod("late", 0, 60))
		advance(time.Minute)
		require.Contains(t, k.killed(), "late")
	})
}

// A list that is empty when the manager has just started is read again after a second.
func TestListThatIsEmptyAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet()
		k.drained(t, k.taking(time.Second))
		k.setPods(shutdowntest.Pod("web", 0, 60))
		advance(time.Minute)
		require.Contains(t, k.killed(), "web")
	})
}

// A static pod that names a class and has no priority has that of the class.
func TestStaticPodWithAClassName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		static := shutdowntest.Pod("etcd", 0, 60)
		static.Spec.Priority, static.Spec.PriorityClassName = nil, "system-node-critical"
		k := newKubelet(shutdowntest.Pod("web", 0, 60), static)
		k.drained(t, k.taking(5*time.Second))
		require.Equal(t, map[string]int64{"web": 20}, k.killed())
		advance(time.Minute)
		require.Contains(t, k.killed(), "etcd")
	})
}

// A kubelet that starts while its shutdown goes on refuses pods before it has asked the host, and goes on
// with the drain.
func TestRestartDuringAShutdown(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("dns", critical, 60))
		conf := k.taking(25 * time.Second)
		conf.StateDirectory = dir
		m := newManagerOfHost(conf, k.host)
		stop := k.startUntil(t, m)
		k.host.Announce(source.Event{Kind: source.KindPoweroff})
		advance(2 * time.Second)
		stop()
		advance(time.Second)
		require.Equal(t, map[string]int64{"web": 20}, k.killed())

		next := newManagerOfHost(conf, k.host)
		require.False(t, admit(next, nil).Admit)
		require.Error(t, next.ShutdownStatus())
		stop = k.startUntil(t, next)
		advance(time.Minute)
		require.Contains(t, k.killed(), "dns")
		stop()
		advance(time.Minute)
	})
}

// The clock of the Config is what a drain is counted by: while it stands still, no bucket ends.
func TestClockOfTheConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("dns", critical, 60))
		conf := k.taking(time.Hour)
		clock := clocktesting.NewFakeClock(time.Now())
		conf.Clock = clock
		k.drained(t, conf)
		advance(10 * time.Second)
		require.Equal(t, map[string]int64{"web": 20}, k.killed())
		clock.Step(21 * time.Second)
		synctest.Wait()
		require.Equal(t, map[string]int64{"web": 20, "dns": 9}, k.killed())
	})
}
