//go:build go1.25

package apistatus_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/apiserverproxy"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// fullNode returns n pods, one in five critical, whose grace periods exceed the shutdown's.
func fullNode(n int) []*v1.Pod {
	var pods []*v1.Pod
	for i := range n {
		priority := int32(0)
		if i%5 == 0 {
			priority = critical
		}
		pods = append(pods, workload(fmt.Sprintf("pod-%03d", i), priority, 60))
	}
	return pods
}

// 110 pods use all their grace period, and each request takes 20 ms. At the release of the inhibitor lock the
// API server has all final statuses, and the shutdown has taken only the planned time.
func TestStatusesAreAcknowledgedBeforeTheLockIsReleased(t *testing.T) {
	pods := fullNode(110)
	inBubble(t, pods, func(t *testing.T, c *cluster, a *agent) {
		c.fault = func(context.Context, call) error {
			<-time.After(20 * time.Millisecond)
			return nil
		}
		a.killer.Default = shutdowntest.Behaviour{Takes: time.Hour} // longer than any grace period
		a.run()
		defer a.end()
		began := time.Now()
		report := a.shutDown(source.KindPoweroff)
		require.Empty(t, report.Errors)
		require.Empty(t, unflushedNames(report))
		released, _ := a.host.Released()
		require.LessOrEqual(t, released.Sub(began), 36*time.Second, "30 s for the pods, 2 s for publishing, and 2 s for statuses in each of the two buckets")
		for _, call := range c.all("") {
			require.True(t, call.At.Before(released))
		}
		for _, pod := range pods {
			require.Equal(t, v1.PodFailed, c.pod(t, pod.Name).Status.Phase)
		}
		for _, kill := range a.killer.Kills() {
			require.Equal(t, "GraceExceeded", outcomeOf(report, kill.Pod.Name))
		}
	})
}

// outcomeOf returns the outcome of a pod in the report; "": the pod is not in it.
func outcomeOf(report shutdown.Report, name string) string {
	for _, pod := range report.Pods {
		if pod.Name == name {
			return pod.Outcome
		}
	}
	return ""
}

// 20 pods use all their grace period, with a real API server and in real time. OnRelease, which is called at the release
// of the lock, counts the final statuses on the server: all are there.
func TestStatusesAreAcknowledgedBeforeTheLockIsReleasedOverTCP(t *testing.T) {
	pods := fullNode(20)
	server, r := serve(t, nodeOf(ready))
	for _, pod := range pods {
		server.create(pod)
	}
	server.Script(apiserverproxy.Always(apiserverproxy.Fault{Delay: time.Millisecond}))
	a := newAgent(t, r, pods...)
	a.opts.Config = plan.Config{
		ShutdownGracePeriod:             metav1.Duration{Duration: 4 * time.Second},
		ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: 2 * time.Second},
	}
	a.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
	atRelease := 0
	a.opts.OnRelease = func(context.Context) { atRelease = server.terminated() }
	a.run()
	defer a.end()
	report := a.shutDown(source.KindPoweroff)
	require.Empty(t, report.Errors)
	require.Empty(t, unflushedNames(report))
	require.Equal(t, 20, atRelease)
}

// If the host grants the requested delay, a dead server takes no time from the pods. If the pods end at
// once, the shutdown takes only the time reserved for reports.
func TestADeadServerTakesNoTimeFromThePods(t *testing.T) {
	// The requested delay: 30 s for the pods, 2 s for publishing, 1 s for NotReady and 1 s for final statuses in each of
	// the two buckets, 2 s as a minimum for the containers, and a margin of 500 ms.
	const limit = 38500 * time.Millisecond
	for name, fault := range map[string]func(context.Context, call) error{
		"refuses": func(context.Context, call) error { return errRefused },
		"hangs":   hang,
	} {
		for _, takes := range []time.Duration{0, time.Hour} {
			t.Run(fmt.Sprintf("%s, pods take %v", name, takes), func(t *testing.T) {
				inBubble(t, fullNode(20), func(t *testing.T, c *cluster, a *agent) {
					a.killer.Default = shutdowntest.Behaviour{Takes: takes}
					var dead atomic.Bool
					c.fault = func(ctx context.Context, call call) error {
						if dead.Load() {
							return fault(ctx, call)
						}
						return nil
					}
					a.run()
					defer a.end()
					synctest.Wait()
					dead.Store(true)
					began := time.Now()
					a.host.Announce(source.Event{Kind: source.KindPoweroff, Deadline: began.Add(limit)})
					report := a.awaitRelease()
					released, _ := a.host.Released()
					require.LessOrEqual(t, released.Sub(began), limit-500*time.Millisecond, "before the host stops waiting")
					if takes == 0 {
						require.LessOrEqual(t, released.Sub(began), 5500*time.Millisecond, "the time for publishing and for the last bucket, and 2.5 s")
					}
					require.Len(t, unflushedNames(report), 20)
					if name == "refuses" {
						require.Contains(t, report.Errors[0], "failed to publish the node state")
						require.Contains(t, report.Errors[0], errRefused.Error(), "the cause is reported")
					}
					for _, kill := range a.killer.Kills() {
						schedule := map[int32]int64{0: 20, critical: 10}
						require.GreaterOrEqual(t, *kill.Request.GracePeriodSeconds, schedule[*kill.Pod.Spec.Priority])
					}
				})
			})
		}
	}
}

// If the server refuses one pod, the report names only that pod.
func TestTheReportNamesUnacknowledgedPods(t *testing.T) {
	for name, err := range map[string]error{"refused": statusError(http.StatusForbidden), "never accepted": errRefused} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, fullNode(20), func(t *testing.T, c *cluster, a *agent) {
				c.fault = func(_ context.Context, call call) error {
					if call.Verb == "patch status" && call.Name == "pod-007" {
						return err
					}
					return nil
				}
				a.run()
				defer a.end()
				report := a.shutDown(source.KindPoweroff)
				require.Equal(t, []string{"pod-007"}, unflushedNames(report))
				require.Contains(t, strings.Join(report.Errors, "\n"), err.Error())
			})
		})
	}
}
