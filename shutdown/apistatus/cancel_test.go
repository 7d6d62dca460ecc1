//go:build go1.25

package apistatus_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/apistatus"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// poweringOff has the conditions of a node that powers off: not ready, and a shutdown in progress.
var poweringOff = []conditionText{notReady, {inProgress, v1.ConditionTrue, "NodeShutdown", shutdownMessage + ": poweroff"}}

// A shutdown is cancelled 5 s after it began, while pods of the lowest bucket are being stopped. The node is
// ready again at once. The signalled pod still ends, and the critical pod, which was not signalled, is ready.
func TestACancelledShutdownResetsTheNodeConditions(t *testing.T) {
	pods := []*v1.Pod{workload("web", 0, 60), workload("etcd", critical, 60)}
	inBubble(t, pods, func(t *testing.T, c *cluster, a *agent) {
		a.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		a.run()
		defer a.end()
		a.host.Announce(source.Event{Kind: source.KindPoweroff})
		advance(5 * time.Second)
		require.Equal(t, poweringOff, conditionTexts(c.node(t).Status.Conditions))
		a.host.Cancel()
		advance(time.Second)
		require.Equal(t, []conditionText{ready, noShutdown}, conditionTexts(c.node(t).Status.Conditions))
		advance(time.Minute)
		require.Equal(t, v1.PodFailed, c.pod(t, "web").Status.Phase, "a signalled pod ends")
		require.Contains(t, conditionSummaries(c.pod(t, "etcd").Status), conditionSummary{v1.PodReady, v1.ConditionTrue, "", 0, false}, "etcd was not signalled")
	})
}

// A pod was marked as not ready for a shutdown that is then cancelled.
func TestRestoreReadinessMakesAPodReadyAgain(t *testing.T) {
	inBubble(t, []*v1.Pod{workload("web", 0, 60)}, func(t *testing.T, c *cluster, a *agent) {
		require.NoError(t, c.reporter(t).MarkNotReady(t.Context(), a.pods[0]))
		require.Equal(t, v1.ConditionFalse, c.pod(t, "web").Status.Conditions[readyIndex].Status)
		require.NoError(t, c.reporter(t).RestoreReadiness(t.Context(), a.pods[0]))
		require.Equal(t, v1.ConditionTrue, c.pod(t, "web").Status.Conditions[readyIndex].Status)
	})
}

// With the feature DaemonSetGracefulNodeShutdown both conditions are True before the first kill. Both
// are reset when the shutdown is cancelled, and when an agent starts after the boot, even without the
// feature.
func TestDrainInProgressIsSetAndResetWithTheShutdownCondition(t *testing.T) {
	pods := []*v1.Pod{workload("web", 0, 60)}
	inBubble(t, pods, func(t *testing.T, c *cluster, a *agent) {
		conditions := func() []conditionText { return conditionTexts(c.node(t).Status.Conditions) }
		c.fault = delayAll(20 * time.Millisecond)
		a.opts.Reporter = c.reporter(t, func(opts *apistatus.Options) { opts.Gates = gate(t, true) })
		a.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		a.run()
		advance(5 * time.Second)
		require.Equal(t, []conditionText{ready}, conditions())

		a.host.Announce(source.Event{Kind: source.KindPoweroff})
		advance(5 * time.Second)
		require.Equal(t, append(poweringOff[:2:2], drains), conditions(), "both, and DrainInProgress")
		kill, killed := a.killer.Kill("web")
		require.True(t, killed)
		require.True(t, kill.Started.After(c.all("patch status")[0].At), "the node is patched before any pod")
		require.Contains(t, c.all("patch status")[0].Body, string(draining))

		a.host.Cancel()
		advance(5 * time.Second)
		require.Equal(t, []conditionText{ready, noShutdown, noDrain}, conditions())

		a.host.Announce(source.Event{Kind: source.KindPoweroff})
		advance(5 * time.Second)
		require.Equal(t, append(poweringOff[:2:2], drains), conditions())
		a.interrupt()
		a.host.SetPending(nil)
		a.opts.Reporter = c.reporter(t)
		a.run()
		advance(5 * time.Second)
		require.Equal(t, []conditionText{ready, noShutdown, noDrain}, conditions())
		a.end()
	})
}

// A restarted agent resets the conditions unless the shutdown is still pending.
func TestNodeConditionsAfterAnAgentRestart(t *testing.T) {
	for name, test := range map[string]struct {
		pending, reboots bool // the host still has the shutdown pending; the machine reboots in between
		want             []conditionText
	}{
		"pending":   {true, false, poweringOff},
		"cancelled": {false, false, []conditionText{ready, noShutdown}},
		"next boot": {false, true, []conditionText{ready, noShutdown}},
	} {
		for _, storesState := range []bool{true, false} {
			if !storesState && test.pending {
				continue // without a state log the drain begins anew
			}
			t.Run(fmt.Sprintf("%s, state log %t", name, storesState), func(t *testing.T) {
				dir := ""
				if storesState {
					dir = t.TempDir()
				}
				inBubble(t, []*v1.Pod{workload("web", 0, 60)}, func(t *testing.T, c *cluster, a *agent) {
					a.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
					a.opts.StateDir = dir
					a.run()
					a.host.Announce(source.Event{Kind: source.KindPoweroff})
					advance(5 * time.Second)
					require.Equal(t, poweringOff, conditionTexts(c.node(t).Status.Conditions))
					a.interrupt()
					require.Equal(t, poweringOff, conditionTexts(c.node(t).Status.Conditions), "a stopping agent resets nothing")
					if !test.pending {
						a.host.SetPending(nil)
					}
					if test.reboots {
						anotherBoot(t, dir)
					}
					a.run()
					if test.pending {
						defer a.interrupt()
					} else {
						defer a.end()
					}
					synctest.Wait()
					advance(time.Second)
					require.Equal(t, test.want, conditionTexts(c.node(t).Status.Conditions))
				})
			})
		}
	}
}

// anotherBoot changes the state log as if the machine had rebooted since: the stored shutdown is of an earlier boot.
func anotherBoot(t *testing.T, dir string) {
	t.Helper()
	if dir == "" {
		return
	}
	name := filepath.Join(dir, "graceful_node_shutdown_log")
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	changed := regexp.MustCompile(`"bootID": ?"[^"]+"`).ReplaceAll(data, []byte(`"bootID":"an earlier one"`))
	require.NotEqual(t, data, changed)
	require.NoError(t, os.WriteFile(name, changed, 0o644))
}
