//go:build e2e

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/examples/internal/machine"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime/containerdtest"
)

const (
	// siteFile stands for an administrator's file. Its name sorts after that of the agent's drop-in, ourFile,
	// so its limit overrides the agent's.
	siteFile = "/etc/systemd/logind.conf.d/zzz-site.conf"
	siteText = "[Login]\nInhibitDelayMaxSec=15\n"
	ourFile  = "/etc/systemd/logind.conf.d/zz-kubegrace.conf"

	siteLimit = 15 * time.Second
	// limitConfig gives 40 s to most pods and 20 s to critical ones. If the host waits for 15 s only, these
	// become 10 s and 5 s, in the same proportion.
	limitConfig = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" +
		"shutdownGracePeriod: 60s\nshutdownGracePeriodCriticalPods: 20s\n"
)

// limitPods returns eight pods that end by themselves within their share of 15 s: six within 10 s, and two
// critical ones within 5 s. A pod that does not exit with 0 was therefore killed too early, or did not have
// its hook in full.
func limitPods() []v1.Pod {
	const critical = 2_000_001_000
	pod := func(name string, priority int32, script, hook string) v1.Pod {
		p := v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: v1.NamespaceDefault, UID: types.UID(name)},
			Spec: v1.PodSpec{
				Priority:   &priority,
				Containers: []v1.Container{{Name: "main", Image: "busybox:1.36", Command: []string{"/bin/sh", "-c", script}}},
			},
		}
		if hook != "" {
			p.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"/bin/sh", "-c", hook}}}}
		}
		return p
	}
	ends := func(seconds int) string {
		return fmt.Sprintf("trap 'sleep %d; exit 0' TERM; while :; do sleep 1000 & wait; done", seconds)
	}
	// flushed exits with 0 only if the hook has written its file, and so was not cut off.
	const flushed = "trap '[ -e /tmp/flushed ] && exit 0; exit 1' TERM; while :; do sleep 1000 & wait; done"
	return []v1.Pod{
		pod("ends-at-once", 0, ends(0), ""),
		pod("ends-after-1s", 0, ends(1), ""),
		pod("ends-after-3s", 0, ends(3), ""),
		pod("ends-after-6s", 0, ends(6), ""),
		pod("hook-of-3s", 0, flushed, "sleep 3; touch /tmp/flushed"),
		pod("hook-of-5s", 0, flushed, "sleep 5; touch /tmp/flushed"),
		pod("critical-after-1s", critical, ends(1), ""),
		pod("critical-after-2s", critical, ends(2), ""),
	}
}

// checkProportions checks that each pod has ended by itself, that all have ended within the limit, and that
// the critical ones were told to stop after the others had ended: the first critical pod takes 1 s to end, so
// it ends at least 1 s later.
func checkProportions(t *testing.T, asked time.Time, exits exitsByName) {
	t.Helper()
	var lastOfMost, firstCritical time.Time
	for name, exit := range exits {
		t.Logf("%s: %d after %.1f s", name, exit.Code, exit.At.Sub(asked).Seconds())
		assert.Zero(t, exit.Code, name)
		switch critical := strings.HasPrefix(name, "critical"); {
		case critical && (firstCritical.IsZero() || exit.At.Before(firstCritical)):
			firstCritical = exit.At
		case !critical && exit.At.After(lastOfMost):
			lastOfMost = exit.At
		}
	}
	assert.GreaterOrEqual(t, firstCritical.Sub(lastOfMost), time.Second-100*time.Millisecond, "critical pods must be told to stop after all others have ended; 0.1 s is a margin")
	assert.Less(t, exits.lastExit().Sub(asked), siteLimit)
}

// requireLow checks that /healthz, systemctl status, the metrics and the plan all say that the host waits for
// 15 s only. The first two must also name the file that is the cause.
func requireLow(t *testing.T, m *machine.Machine) {
	t.Helper()
	page := getPage(t, m, "/healthz")
	require.Contains(t, page, "503 Service Unavailable")
	require.Contains(t, page, "missing: time for the pods: ")
	require.Contains(t, page, "by 15s at most")
	require.Contains(t, page, siteFile)
	text := m.Run(t, "systemctl", "show", "--property=StatusText", "--value", agentUnit)
	require.Contains(t, text, "for up to 15s")
	require.Contains(t, text, siteFile)
	require.Contains(t, getPage(t, m, "/metrics"), `graceful_shutdown_delay_seconds{kind="granted"} 15`)
	require.LessOrEqual(t, planOf(t, m).ReleaseSeconds, siteLimit.Seconds())
}

// While the agent holds its lock, somebody removes its drop-in: it must write the file again. Then an
// administrator's file lowers logind's limit to 15 s. The agent cannot override that file. It must notice and
// report it within ten seconds, and at the power off give each pod its share of the 15 s.
func TestLimitThatIsLoweredUnderTheAgent(t *testing.T) {
	eachPlatform(t, testLimitThatIsLoweredUnderTheAgent)
}

// testLimitThatIsLoweredUnderTheAgent removes the agent's drop-in, then writes siteFile, and each time waits
// for what the agent must do. Then it powers the machine off and checks the shares of the pods.
func testLimitThatIsLoweredUnderTheAgent(t *testing.T, on platform) {
	const within = 10*time.Second + 5*time.Second // the manager looks every 10 s; 5 s for a busy machine
	m, server, containers := bootAgentWith(t, on, limitPods(), map[string]string{configFile: limitConfig})
	require.Contains(t, getPage(t, m, "/healthz"), "200 OK")
	whole := limitOf(t, m)
	require.Greater(t, whole, 60*time.Second)

	m.Run(t, "rm", ourFile)
	reloadLogind(t, m)
	require.Eventually(t, func() bool { return limitOf(t, m) == 5*time.Second }, within, 20*time.Millisecond, "logind's default, without the drop-in")
	require.Eventually(t, func() bool { return limitOf(t, m) == whole }, within, 20*time.Millisecond, "the agent has raised it again")
	require.True(t, delaysShutdowns(t, m))

	m.Run(t, "bash", "-c", "printf \"$0\" > "+siteFile, siteText)
	reloadLogind(t, m)
	lowered := time.Now()
	require.Eventually(t, func() bool { return strings.Contains(getPage(t, m, "/healthz"), "503") }, within, 100*time.Millisecond)
	t.Logf("seen after %v", time.Since(lowered).Round(100*time.Millisecond))
	require.True(t, delaysShutdowns(t, m))
	requireLow(t, m)
	awaitRow(t, m, "limit lowered under kubegrace-node (d)")
	powerOffInTime(t, m, server, containers)
}

// reloadLogind makes logind read its files again.
func reloadLogind(t *testing.T, m *machine.Machine) {
	t.Helper()
	m.Run(t, "systemctl", "kill", "--kill-who=main", "--signal=HUP", "systemd-logind.service")
}

// limitOf asks logind how long it delays a shutdown at most.
func limitOf(t *testing.T, m *machine.Machine) time.Duration {
	t.Helper()
	value := m.Run(t, "busctl", "get-property", "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "InhibitDelayMaxUSec")
	limit, err := time.ParseDuration(strings.TrimPrefix(value, "t ") + "us")
	require.NoError(t, err)
	return limit
}

// powerOffInTime powers off a machine whose pods are limitPods, and checks that these had their share of 15 s.
func powerOffInTime(t *testing.T, m *machine.Machine, server *containerdtest.Server, containers map[string]string) {
	t.Helper()
	asked := time.Now()
	m.Run(t, "systemctl", "poweroff")
	m.AwaitPowerOff(t)
	exits := awaitExits(t, server, containers)
	journal := m.Journal(t)
	logAgent(t, journal)
	checkProportions(t, asked, exits)
	checkPowerOff(t, exits, journal)
	require.Empty(t, lastReport(t, m).Errors)
}
