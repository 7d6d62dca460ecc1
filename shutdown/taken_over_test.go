//go:build go1.25

package shutdown_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// A shutdown that begins or is resumed during TerminateAll takes over its pods. A repeated kill
// of a pod gives it less time, never more. Each pod counts once in the metrics, and is in each report once.
func TestAShutdownTakesOverThePodsOfTerminateAll(t *testing.T) {
	for name, test := range map[string]struct {
		before, after func(t *testing.T, n *node, one *boot)
		granted       int64
	}{
		"by a new shutdown": {
			before: func(_ *testing.T, n *node, one *boot) { n.runOnBoot(one) },
			after: func(_ *testing.T, n *node, _ *boot) {
				n.host.Announce(source.Event{Deadline: time.Now().Add(15 * time.Second)})
			},
			granted: 20,
		},
		"by that of a previous agent, which had killed the pod": {
			before: func(t *testing.T, n *node, one *boot) {
				counted := n.opts.Metrics
				n.opts.Metrics = nil
				n.runOnBoot(one)
				n.announce()
				n.advance(3 * time.Second)
				n.crash()
				n.opts.Metrics = counted
				n.host.PendingTakes = 8 * time.Second
				m, err := shutdown.NewManagerOn(n.opts, one.sinceBoot)
				require.NoError(t, err)
				n.start(m)
				synctest.Wait() // the log is read
			},
			after:   func(*testing.T, *node, *boot) {},
			granted: 12, // TerminateAll has waited for the host
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
				reg, reports := prometheus.NewRegistry(), make(chan shutdown.Report, 10)
				var err error
				n.opts.Metrics, err = metrics.NewShutdown(reg, metrics.Options{})
				require.NoError(t, err)
				n.opts.OnReport = func(_ context.Context, r shutdown.Report) { reports <- r }
				n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
				test.before(t, n, one)
				done := n.terminateAll()
				n.advance(7 * time.Second)
				require.Equal(t, map[string]int64{"web": test.granted}, n.grantedSeconds())
				test.after(t, n, one)
				n.advance(2 * time.Minute)
				require.NotErrorIs(t, <-done, context.Canceled)
				synctest.Wait()
				until := map[string]time.Time{}
				for _, k := range n.killer.Kills() {
					end := k.Started.Add(time.Duration(*k.Request.GracePeriodSeconds) * time.Second)
					if known, again := until[k.Pod.Name]; again {
						require.True(t, end.Before(known), "%s gets %d s at %v", k.Pod.Name, *k.Request.GracePeriodSeconds, k.Started)
					}
					until[k.Pod.Name] = end
				}
				require.Len(t, until, 2)
				require.Equal(t, 2.0, podsTotal(t, reg))
				for range len(reports) {
					names := map[string]int{}
					for _, p := range (<-reports).Pods {
						names[p.Name]++
						require.Equal(t, 1, names[p.Name])
					}
				}
			})
		})
	}
}

// podsTotal returns the number of pods that are counted, whatever their outcome is.
func podsTotal(t *testing.T, reg prometheus.Gatherer) (total float64) {
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == "kubelet_graceful_shutdown_pods_total" {
			for _, m := range family.GetMetric() {
				total += m.GetCounter().GetValue()
			}
		}
	}
	return total
}
