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

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"

	"k8s.io/kubernetes/pkg/features"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/kubegrace"
	kubeletmetrics "k8s.io/kubernetes/pkg/kubelet/metrics"
	"k8s.io/kubernetes/pkg/vectors"
)

// kubelet has the functions that a kubelet's shutdown manager calls.
type kubelet struct {
	events *record.FakeRecorder
	host   *shutdowntest.Host
	over   chan struct{} // closed at the end of the manager, which ends its kills

	mu     sync.Mutex // guards all below
	pods   []*v1.Pod
	kills  map[string]int64
	synced int      // how often the node's status was
	waited []string // the pods whose volumes were waited for
}

func newKubelet(pods ...*v1.Pod) *kubelet {
	return &kubelet{events: record.NewFakeRecorder(100), host: &shutdowntest.Host{}, over: make(chan struct{}), pods: pods, kills: map[string]int64{}}
}

func (k *kubelet) config(total, critical time.Duration) *Config {
	return &Config{
		Logger:                          klog.Background(),
		VolumeManager:                   k,
		Recorder:                        k.events,
		NodeRef:                         &v1.ObjectReference{Kind: "Node", Name: "node"},
		GetPodsFunc:                     func() []*v1.Pod { return k.pods },
		KillPodFunc:                     k.killPod,
		SyncNodeStatusFunc:              syncs(k.syncNodeStatus),
		ShutdownGracePeriodRequested:    total,
		ShutdownGracePeriodCriticalPods: critical,
	}
}

func (k *kubelet) WaitForAllPodsUnmount(_ context.Context, pods []*v1.Pod) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, pod := range pods {
		k.waited = append(k.waited, pod.Name)
	}
	return nil
}

func (k *kubelet) syncNodeStatus() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.synced++
}

// killPod kills a pod at once and records its status, as a status manager does.
func (k *kubelet) killPod(pod *v1.Pod, isEvicted bool, override *int64, fn func(*v1.PodStatus)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if isEvicted {
		return errors.New("a shutdown is no eviction")
	}
	k.kills[pod.Name] = *override
	fn(&pod.Status)
	return nil
}

// start makes a manager and starts it until the test ends.
func (k *kubelet) start(t *testing.T, conf *Config) (Manager, error) {
	t.Helper()
	m := newManagerOfHost(conf, k.host)
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(func() {
		stop()
		close(k.over)
		synctest.Wait()
		require.Zero(t, k.host.Held(), "locks after the end")
	})
	return m, startManager(ctx, m)
}

// startUntil starts a manager, and returns what ends it.
func (k *kubelet) startUntil(t *testing.T, m Manager) (stop context.CancelFunc) {
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

// In a shutdown the node's status is synced before the first kill. The events, the metrics and the
// state file are the kubelet's.
func TestShutdownIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kubeletmetrics.Register()
		k := newKubelet(shutdowntest.Pod("web", 0, 5))
		conf := k.config(30*time.Second, 10*time.Second)
		before := -1
		conf.KillPodFunc = func(pod *v1.Pod, evict bool, grace *int64, fn func(*v1.PodStatus)) error {
			k.mu.Lock()
			before = k.synced
			k.mu.Unlock()
			return k.killPod(pod, evict, grace, fn)
		}
		conf.StateDirectory = t.TempDir()
		_, err := k.start(t, conf)
		require.NoError(t, err)
		synctest.Wait()
		first := k.synced // that nothing goes on
		k.host.Announce(source.Event{Kind: source.KindPoweroff})
		advance(time.Minute)
		require.Equal(t, first+1, before)
		require.Equal(t, []string{"Normal Shutdown Shutdown manager detected shutdown event"}, vectors.Events(k.events))

		require.Equal(t, []string{"web"}, k.waited)
		require.FileExists(t, filepath.Join(conf.StateDirectory, "graceful_node_shutdown_state"))

		families, err := legacyregistry.DefaultGatherer.Gather()
		require.NoError(t, err)
		times := map[string]float64{}
		for _, family := range families {
			if name := family.GetName(); strings.HasPrefix(name, "kubelet_graceful_shutdown_") && strings.HasSuffix(name, "_time_seconds") {
				times[name] = family.GetMetric()[0].GetGauge().GetValue()
				require.Contains(t, family.GetHelp(), "[ALPHA] ")
			}
		}
		began := float64(time.Now().Add(-time.Minute).Unix())
		require.Equal(t, map[string]float64{
			"kubelet_graceful_shutdown_start_time_seconds": began,
			"kubelet_graceful_shutdown_end_time_seconds":   began,
		}, times)
	})
}

// If the host refuses the lock at the start, the manager tries again, and Start gives no error. The
// kubelet's gives up.
func TestStartGoesOnTrying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet()
		k.host.ConnectErr = errors.New("no bus")
		_, err := k.start(t, k.config(30*time.Second, 0))
		require.NoError(t, err)
		require.Zero(t, k.host.Held())
		k.host.Script(func(h *shutdowntest.Host) { h.ConnectErr = nil })
		advance(2 * time.Second)
		require.Equal(t, 1, k.host.Held())
	})
}

// A host that waits for less than the pods' time is held all the same.
func TestStartWithAHostThatWaitsForLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet()
		k.host.Limit = 5 * time.Second
		_, err := k.start(t, k.config(30*time.Second, 10*time.Second))
		require.NoError(t, err)
		require.Equal(t, 1, k.host.Held())
	})
}

// The kubelet's stub: without a grace period nothing is watched.
func TestStartWithoutAGracePeriod(t *testing.T) {
	require.Equal(t, managerStub{}, newManagerOfHost(newKubelet().config(0, 0), &shutdowntest.Host{}))
}

// With the kubelet's feature gate off nothing is watched.
func TestStartWithoutTheGate(t *testing.T) {
	vectors.SetGate(t, features.GracefulNodeShutdown, false)
	require.Equal(t, managerStub{}, newManagerOfHost(newKubelet().config(30*time.Second, 0), &shutdowntest.Host{}))
}

// A list by priority replaces the two other fields.
func TestStartByPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("db", 10, 60))
		conf := k.config(0, 0)
		conf.ShutdownGracePeriodByPodPriority = []kubeletconfig.ShutdownGracePeriodByPodPriority{{Priority: 10, ShutdownGracePeriodSeconds: 20}, {Priority: 0, ShutdownGracePeriodSeconds: 30}}
		_, err := k.start(t, conf)
		require.NoError(t, err)
		k.host.Announce(source.Event{Kind: source.KindReboot})
		advance(2 * time.Minute)
		require.Equal(t, map[string]int64{"web": 30, "db": 50}, k.kills, "what web has left is db's")
	})
}

// A list whose seconds are all 0 asks the host for no time, and holds it as the kubelet does.
func TestStartByPriorityWithoutSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKubelet(shutdowntest.Pod("web", 0, 60))
		conf := k.config(0, 0)
		conf.ShutdownGracePeriodByPodPriority = []kubeletconfig.ShutdownGracePeriodByPodPriority{{Priority: 0}}
		_, err := k.start(t, conf)
		require.NoError(t, err)
		require.Equal(t, 1, k.host.Held())
		require.Equal(t, []time.Duration{0}, k.host.RequestedDelays())
		k.host.Announce(source.Event{Kind: source.KindReboot})
		advance(time.Minute)
		require.Equal(t, map[string]int64{"web": 0}, k.kills)
		require.Zero(t, k.host.Held())
	})
}

// What is wrong with the Config is logged, and pods are admitted.
func TestABadConfig(t *testing.T) {
	var log bytes.Buffer
	conf := newKubelet().config(time.Second, time.Minute)
	conf.Logger = textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))
	require.Equal(t, managerStub{}, newManagerOfHost(conf, &shutdowntest.Host{}))
	require.Contains(t, log.String(), "shutdownGracePeriodCriticalPods {1m0s} must be <= shutdownGracePeriod {1s}")
}

// A bus that accepts the connection and never answers delays the start by two seconds.
func TestStartBehindASilentBus(t *testing.T) {
	vectors.SetGate(t, kubegrace.NodeShutdown, true)
	socket := filepath.Join(t.TempDir(), "bus")
	bus, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, bus.Close()) })
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+socket)
	m := NewManager(newKubelet().config(30*time.Second, 10*time.Second))
	began := time.Now()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	require.NoError(t, startManager(ctx, m))
	require.Less(t, time.Since(began), 4*time.Second) // on a machine that is busy
	require.True(t, admit(m, nil).Admit)
}

// With the gate off the manager is the kubelet's.
func TestGateOfNodeShutdown(t *testing.T) {
	require.IsType(t, &managerImpl{}, NewManager(newKubelet().config(30*time.Second, 10*time.Second)))
	vectors.SetGate(t, kubegrace.NodeShutdown, true)
	require.IsType(t, &kubegraceManager{}, NewManager(newKubelet().config(30*time.Second, 10*time.Second)))
}
