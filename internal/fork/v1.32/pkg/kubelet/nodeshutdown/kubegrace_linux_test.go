package nodeshutdown

import (
	"bytes"
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"

	"k8s.io/kubernetes/pkg/features"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/kubegrace"
	kubeletmetrics "k8s.io/kubernetes/pkg/kubelet/metrics"
	"k8s.io/kubernetes/pkg/vectors"
)

// kubelet has the functions that a shutdown manager calls.
type kubelet struct {
	events  *record.FakeRecorder
	host    *shutdowntest.Host
	stopped chan struct{} // closed when the manager stops; ends slow kills

	mu        sync.Mutex // guards all below
	pods      []*v1.Pod
	kills     map[string]int64 // the last grace period of each killed pod
	synced    int              // the number of syncs of the node's status
	unmounted []string         // the pods whose unmounts were awaited
}

// newKubelet returns a kubelet with these pods, whose host grants every delay.
func newKubelet(pods ...*v1.Pod) *kubelet {
	return &kubelet{events: record.NewFakeRecorder(100), host: &shutdowntest.Host{}, stopped: make(chan struct{}), pods: pods, kills: map[string]int64{}}
}

// config returns the configuration of a manager of this kubelet. total is the time of all pods, of which the last part
// is for critical pods.
func (k *kubelet) config(total, critical time.Duration) *Config {
	return &Config{
		Logger:                          klog.Background(),
		VolumeManager:                   k,
		Recorder:                        k.events,
		NodeRef:                         &v1.ObjectReference{Kind: "Node", Name: "node"},
		GetPodsFunc:                     k.getPods,
		KillPodFunc:                     k.killPod,
		SyncNodeStatusFunc:              syncFunc(k.syncNodeStatus),
		ShutdownGracePeriodRequested:    total,
		ShutdownGracePeriodCriticalPods: critical,
	}
}

// getPods returns copies of the pods of the node, because killPod changes the pods.
func (k *kubelet) getPods() []*v1.Pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	pods := make([]*v1.Pod, len(k.pods))
	for i, pod := range k.pods {
		pods[i] = pod.DeepCopy()
	}
	return pods
}

// WaitForAllPodsUnmount records the pods and does not wait.
func (k *kubelet) WaitForAllPodsUnmount(_ context.Context, pods []*v1.Pod) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, pod := range pods {
		k.unmounted = append(k.unmounted, pod.Name)
	}
	return nil
}

// syncNodeStatus counts the calls.
func (k *kubelet) syncNodeStatus() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.synced++
}

// killPod kills a pod at once and sets the status of the node's own pod, as a status manager does.
func (k *kubelet) killPod(pod *v1.Pod, isEvicted bool, override *int64, fn func(*v1.PodStatus)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if isEvicted {
		return errors.New("a shutdown is no eviction")
	}
	k.kills[pod.Name] = *override
	for _, own := range k.pods {
		if own.Name == pod.Name {
			fn(&own.Status)
		}
	}
	return nil
}

// admits reports whether a manager admits pods. It asks without a pod, which is answered as for any pod.
func admits(m Manager) bool {
	var anyPod *v1.Pod
	return admit(m, anyPod).Admit
}

// start runs a manager until the test ends.
func (k *kubelet) start(t *testing.T, conf *Config) Manager {
	t.Helper()
	m := newManagerOfHost(conf, k.host)
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(func() {
		stop()
		close(k.stopped)
		synctest.Wait()
		require.Zero(t, k.host.Held(), "locks after the manager stopped")
	})
	require.NoError(t, startManager(ctx, m))
	return m
}

// startManager runs a manager until the caller calls stop.
func (k *kubelet) startManager(t *testing.T, m Manager) (stop context.CancelFunc) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	require.NoError(t, startManager(ctx, m))
	synctest.Wait()
	return stop
}

// advance advances the time of the bubble and waits until all goroutines are blocked.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// The host announces a shutdown. Between the announcement and the first kill the node's status is synced exactly once more
// than at the start of the manager.
func TestTheNodesStatusIsSyncedBeforeTheFirstKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet(shortPod("web", regular))
		conf := k.defaultConfig()
		syncedAtKill := -1
		conf.KillPodFunc = func(pod *v1.Pod, evict bool, grace *int64, fn func(*v1.PodStatus)) error {
			<-time.After(time.Millisecond) // the sync was called before, but as in the kubelet nothing waits for its goroutine
			k.mu.Lock()
			syncedAtKill = k.synced
			k.mu.Unlock()
			return k.killPod(pod, evict, grace, fn)
		}

		k.start(t, conf)
		synctest.Wait()
		syncedAtStart := k.synced

		k.host.Announce(source.Event{Kind: source.KindPoweroff})
		advance(time.Minute)
		require.Equal(t, syncedAtStart+1, syncedAtKill)
	})
}

// In a shutdown the manager records the kubelet's event, writes its state file, and awaits the unmounts of the killed pod.
func TestTheEffectsOfAShutdownAreTheKubelets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet(shortPod("web", regular))
		conf := k.defaultConfig()
		conf.StateDirectory = t.TempDir()
		k.startAndAnnounce(t, conf)
		advance(time.Minute)
		require.Equal(t, []string{"Normal Shutdown Shutdown manager detected shutdown event"}, vectors.Events(k.events))
		require.Equal(t, []string{"web"}, k.unmounted)
		require.FileExists(t, filepath.Join(conf.StateDirectory, "graceful_node_shutdown_state"))
	})
}

// The kubelet's metrics have the times of the shutdown. The only kill takes no time, so the shutdown ends at the time when
// it began.
func TestTheTimesOfAShutdownAreInTheKubeletsMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kubeletmetrics.Register()
		k := newKubelet(shortPod("web", regular))
		began := float64(time.Now().Unix())
		k.startAndAnnounce(t, k.defaultConfig())
		advance(time.Minute)
		families, err := legacyregistry.DefaultGatherer.Gather()
		require.NoError(t, err)
		times := map[string]float64{}
		for _, family := range families {
			if name := family.GetName(); strings.HasPrefix(name, "kubelet_graceful_shutdown_") && strings.HasSuffix(name, "_time_seconds") {
				times[name] = family.GetMetric()[0].GetGauge().GetValue()
				require.Contains(t, family.GetHelp(), "[ALPHA] ", "the stability of the kubelet's metrics")
			}
		}
		require.Equal(t, map[string]float64{
			"kubelet_graceful_shutdown_start_time_seconds": began,
			"kubelet_graceful_shutdown_end_time_seconds":   began,
		}, times)
	})
}

// If the host is unavailable at the start, Start returns no error. The manager tries again, and takes the lock within 2
// s after the host is back. The kubelet's manager gives up.
func TestAFailedStartIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet()
		k.host.ConnectErr = errors.New("no bus")
		k.start(t, k.defaultConfig())
		require.Zero(t, k.host.Held(), "no lock is held")

		k.host.Script(func(h *shutdowntest.Host) { h.ConnectErr = nil })
		advance(2 * time.Second)
		require.Equal(t, 1, k.host.Held(), "the lock is held")
	})
}

// The host grants a delay of 5 s, which is less than the 30 s of the pods. The manager takes the lock all the same.
func TestTheLockIsTakenForAShorterDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet()
		k.host.Limit = 5 * time.Second
		k.start(t, k.defaultConfig())
		require.Equal(t, 1, k.host.Held(), "the lock is held")
	})
}

// The configuration has no grace period for shutdowns. The manager is the kubelet's stub, which does nothing.
func TestNoGracePeriodMeansTheStub(t *testing.T) {
	const total, critical = 0, 0
	require.Equal(t, managerStub{}, newManagerOfHost(newKubelet().config(total, critical), &shutdowntest.Host{}))
}

// If the kubelet's feature gate is off, the manager is the kubelet's stub.
func TestADisabledGateMeansTheStub(t *testing.T) {
	vectors.SetGate(t, features.GracefulNodeShutdown, false)
	require.Equal(t, managerStub{}, newManagerOfHost(newKubelet().defaultConfig(), &shutdowntest.Host{}))
}

// The configuration is a list of priorities: 30 s for the pod web of priority 0, and 20 s for the pod db of priority
// 10. web ends at once, so its 30 s go to db, which has 50 s.
func TestUnusedTimeGoesToTheNextPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet(longPod("web", 0), longPod("db", 10))
		conf := k.config(0, 0) // the list replaces these two grace periods
		conf.ShutdownGracePeriodByPodPriority = []kubeletconfig.ShutdownGracePeriodByPodPriority{{Priority: 10, ShutdownGracePeriodSeconds: 20}, {Priority: 0, ShutdownGracePeriodSeconds: 30}}
		k.start(t, conf)
		k.host.Announce(source.Event{Kind: source.KindReboot})
		advance(2 * time.Minute)
		require.Equal(t, map[string]int64{"web": 30, "db": 30 + 20}, k.kills)
	})
}

// All priorities have 0 s. As in the kubelet, the manager takes the lock, and requests a delay of 0 s. In a shutdown it
// kills the pods with a grace period of 0 s and releases the lock.
func TestPrioritiesWithoutSecondsTakeTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet(longPod("web", regular))
		conf := k.config(0, 0) // the list replaces these two grace periods
		conf.ShutdownGracePeriodByPodPriority = []kubeletconfig.ShutdownGracePeriodByPodPriority{{Priority: 0}}
		k.start(t, conf)
		require.Equal(t, 1, k.host.Held(), "the lock is held")
		require.Equal(t, []time.Duration{0}, k.host.RequestedDelays())

		k.host.Announce(source.Event{Kind: source.KindReboot})
		advance(time.Minute)
		require.Equal(t, map[string]int64{"web": 0}, k.kills)
		require.Zero(t, k.host.Held(), "the lock is released")
	})
}

// The Config is invalid: critical pods have more time than all pods. The error is logged, and the manager is the
// kubelet's stub.
func TestAnInvalidConfigIsLogged(t *testing.T) {
	var log bytes.Buffer
	const total, critical = time.Second, time.Minute
	conf := newKubelet().config(total, critical)
	conf.Logger = textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))
	require.Equal(t, managerStub{}, newManagerOfHost(conf, &shutdowntest.Host{}))
	require.Contains(t, log.String(), "shutdownGracePeriodCriticalPods {1m0s} must be <= shutdownGracePeriod {1s}")
}

// The system bus accepts connections but does not respond. It delays the start of the manager by 2 s only, and the
// manager admits pods.
func TestStartDoesNotWaitForAnUnresponsiveBus(t *testing.T) {
	vectors.SetGate(t, kubegrace.NodeShutdown, true)
	socket := filepath.Join(t.TempDir(), "bus")
	bus, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, bus.Close()) })
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+socket)
	m := NewManager(newKubelet().defaultConfig())
	began := time.Now()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	require.NoError(t, startManager(ctx, m))
	require.Less(t, time.Since(began), 4*time.Second, "2 s, and 2 s more for a slow machine")
	require.True(t, admits(m))
}

// NewManager returns the kubelet's manager if the feature gate is off, and kubegrace's if it is on.
func TestTheGateSelectsTheManager(t *testing.T) {
	require.IsType(t, &managerImpl{}, NewManager(newKubelet().defaultConfig()))
	vectors.SetGate(t, kubegrace.NodeShutdown, true)
	require.IsType(t, &kubegraceManager{}, NewManager(newKubelet().defaultConfig()))
}
