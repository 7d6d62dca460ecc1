//go:build go1.25

package apistatus_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/need"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// showsShutdown reports whether the node has the conditions of a shutdown.
func showsShutdown(node *v1.Node) bool {
	all := conditionTexts(node.Status.Conditions)
	return len(all) == 2 && all[0] == notReady && all[1].Status == v1.ConditionTrue
}

// In each of 1,000 shutdowns the API server is slow (up to 80 ms a request) and answers with up to three conflicts. When
// a pod is killed, the node already has the conditions of a shutdown: OnKill requires that. If the test is to do less, each
// delay meets each number of conflicts twice.
func TestNodeConditionsAreWrittenBeforeTheFirstKill(t *testing.T) {
	pods := []*v1.Pod{workload("web", 0, 5), workload("etcd", critical, 5)}
	shutdowns := 1000
	if need.Less(t, "864 of 1,000 shutdowns with conflicts and slow requests") {
		shutdowns = 2 * 4 * 17
	}
	for i := range shutdowns {
		inBubble(t, pods, func(t *testing.T, c *cluster, a *agent) {
			conflicts := failFirst(i%4, "patch status", statusError(http.StatusConflict))
			c.fault = func(ctx context.Context, call call) error {
				<-time.After(time.Duration(i%17) * 5 * time.Millisecond)
				return conflicts(ctx, call)
			}
			a.killer.OnKill = func(*v1.Pod) { require.True(t, showsShutdown(c.node(t)), "run %d", i) }
			a.run()
			defer a.end()
			a.shutDown(source.KindReboot)
			require.Len(t, a.killer.Kills(), 2)
		})
	}
}

// In each of 200 shutdowns a real API server already has the node's conditions of the shutdown when the pod is killed:
// OnKill reads them.
func TestNodeConditionsAreWrittenBeforeTheFirstKillOverTCP(t *testing.T) {
	web := workload("web", 0, 5)
	server, r := serve(t, nodeOf(ready), web)
	for run := range 200 {
		server.setNodeStatus(nodeOf(ready))
		server.setStatus(web)
		a := newAgent(t, r, web)
		a.opts.Plan.PublishTimeout = time.Minute // a busy machine may need more than 2 s
		shown := false
		a.killer.OnKill = func(*v1.Pod) { shown = showsShutdown(server.node()) }
		a.run()
		a.shutDown(source.KindReboot)
		a.end()
		require.True(t, shown, "run %d", run)
	}
}
