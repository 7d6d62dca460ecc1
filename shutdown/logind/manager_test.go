//go:build linux

package logind_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/logindhost"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// A manager drains pods when a real logind powers off.
func TestRealManager(t *testing.T) {
	if !logindhost.InNamespace(t) {
		return
	}
	for name, test := range map[string]func(*testing.T, *logindhost.Host){
		"drained":                 testManagerDrained,
		"delay expired":           testManagerDelayExpired,
		"restarted without locks": testManagerRestartedWithoutLocks,
	} {
		t.Run(name, func(t *testing.T) { test(t, logindhost.StartHost(t)) })
	}
}

// buckets is a configuration with two buckets, of 2 s and 1 s.
var buckets = plan.Config{ShutdownGracePeriodByPodPriority: []plan.PodPriorityGracePeriod{
	{Priority: 0, ShutdownGracePeriodSeconds: 2}, {Priority: 1000, ShutdownGracePeriodSeconds: 1},
}}

// runReadyManager runs a manager on the real logind until the test ends, and returns when it is ready.
func runReadyManager(t *testing.T, options shutdown.Options) *shutdown.Manager {
	t.Helper()
	return runManagerIn(t.Context(), t, shortReloadSource(t), options)
}

// runManagerIn runs a manager on a source, with the pods web (priority 0) and dns (priority 1000), until ctx or the test
// ends. It returns when the manager is ready.
func runManagerIn(ctx context.Context, t *testing.T, source source.Source, options shutdown.Options) *shutdown.Manager {
	t.Helper()
	options.Source = source
	const graceSeconds = 30 // more than the seconds of any bucket here
	options.ListPods = shutdown.ListPodsFunc(func() []*v1.Pod {
		return []*v1.Pod{shutdowntest.Pod("web", 0, graceSeconds), shutdowntest.Pod("dns", 1000, graceSeconds)}
	}, nil)
	manager, err := shutdown.NewManager(options)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	select {
	case <-manager.Ready():
	case <-time.After(testTimeout):
		require.Fail(t, "the manager is not ready")
	}
	return manager
}

// awaitHeld waits until the manager holds the host's only lock.
func awaitHeld(t *testing.T, host *logindhost.Host, manager *shutdown.Manager) {
	t.Helper()
	require.Eventually(t, func() bool {
		return manager.Inhibitor().Held && manager.Inhibitor().Err == nil && len(host.Inhibitors()) == 1
	}, testTimeout, 5*time.Millisecond, "%+v", manager.Inhibitor())
}

// The pods of two buckets take 300 ms each. The host waits for both buckets, but not for the whole granted delay. The
// requested delay of 92.5 s is 60 s and 30 s for the buckets, 2 s for containers that have used up their grace period, and
// a margin of 0.5 s.
func testManagerDrained(t *testing.T, host *logindhost.Host) {
	killer := &shutdowntest.Killer{Default: shutdowntest.Behaviour{Takes: 300 * time.Millisecond}}
	manager := runReadyManager(t, shutdown.Options{Config: plan.Config{ShutdownGracePeriodByPodPriority: []plan.PodPriorityGracePeriod{
		{Priority: 0, ShutdownGracePeriodSeconds: 60}, {Priority: 1000, ShutdownGracePeriodSeconds: 30},
	}}, Killer: killer})
	awaitHeld(t, host, manager)
	inhibitor := manager.Inhibitor()
	require.Equal(t, 92500*time.Millisecond, inhibitor.Requested)
	require.Equal(t, 93*time.Second, inhibitor.Granted, "the drop-in has whole seconds")

	before := time.Now()
	host.PowerOff()
	awaitPowerOff(t, host)
	powerOff := time.Now()
	kills := killer.Kills()
	require.Len(t, kills, 2)
	require.Equal(t, "web", kills[0].Pod.Name)
	require.Equal(t, "dns", kills[1].Pod.Name)
	require.False(t, kills[1].Started.Before(kills[0].Ended), "bucket after bucket")
	require.False(t, powerOff.Before(kills[1].Ended), "the host waits for the second bucket")
	require.GreaterOrEqual(t, powerOff.Sub(before), 600*time.Millisecond)
	require.Less(t, powerOff.Sub(before), inhibitor.Granted/2, "logind continues when the manager releases the lock")
	require.Equal(t, shutdown.Admission{Admit: false, Reason: "NodeShutdown", Message: "Pod was rejected as the node is shutting down."},
		manager.Admit(shutdowntest.Pod("late", 0, 30)))
}

// An administrator's file limits the delay to 1 s, and the pods hang. The manager releases its lock shortly before the
// second is over, and logind powers off. The margin before that is 100 ms, so the pods get at least 800 ms even if the test
// is slow.
func testManagerDelayExpired(t *testing.T, host *logindhost.Host) {
	host.Configure("/etc/systemd/logind.conf.d/zzz.conf", "[Login]\nInhibitDelayMaxSec=1\n", time.Second)
	killer := &shutdowntest.Killer{Default: shutdowntest.Behaviour{Hangs: true, IgnoresContext: true}}
	manager := runReadyManager(t, shutdown.Options{Config: buckets, Killer: killer})
	t.Cleanup(killer.Release)
	require.True(t, manager.Inhibitor().Held, "the lock is taken although the limit is lower")
	require.Equal(t, time.Second, manager.Inhibitor().Granted)
	require.ErrorContains(t, manager.Inhibitor().Err, "/etc/systemd/logind.conf.d/zzz.conf")

	before := time.Now()
	host.PowerOff()
	awaitPowerOff(t, host)
	require.GreaterOrEqual(t, time.Since(before), 800*time.Millisecond, "the pods got all the time but the margin")
	require.Eventually(t, func() bool { return len(host.Inhibitors()) == 0 }, testTimeout, time.Millisecond, "the lock is released at the deadline")
}

// logind is killed, and the files are removed in which it keeps its locks. So the next logind lists no lock. The manager must
// notice that and take a new one.
func testManagerRestartedWithoutLocks(t *testing.T, host *logindhost.Host) {
	manager := runReadyManager(t, shutdown.Options{Config: buckets, Killer: &shutdowntest.Killer{}})
	awaitHeld(t, host, manager)
	host.Kill()
	require.NoError(t, os.RemoveAll("/run/systemd/inhibit")) // logind keeps its locks there; systemctl stop may remove it
	require.NoError(t, os.Mkdir("/run/systemd/inhibit", 0o755))
	host.Start()
	require.Empty(t, host.Inhibitors())
	awaitHeld(t, host, manager)
}
