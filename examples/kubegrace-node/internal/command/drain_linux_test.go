package command_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/kubelettest"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime/containerdtest"
)

// obedient exits with 3 after TERM if its hook has run, else with 4.
const obedient = "trap '[ -e /tmp/hooked ] && exit 3; exit 4' TERM; touch /tmp/ready; while :; do sleep 1000 & wait; done"

// pod returns a pod with one container, main, and a preStop hook.
func pod(namespace, name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)},
		Spec: v1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To(int64(7)),
			Containers: []v1.Container{{
				Name: "main", Image: "busybox:1.36", Command: []string{"/bin/sh", "-c"}, Args: []string{obedient},
				Lifecycle: &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"/bin/touch", "/tmp/hooked"}}}},
			}},
		},
	}
}

// awaitReady waits until a container handles signals.
func awaitReady(t *testing.T, server *containerdtest.Server, id string) {
	t.Helper()
	require.Eventually(t, func() bool {
		answer, err := server.Runtime().ExecSync(t.Context(), &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"/bin/ls", "/tmp/ready"}, Timeout: 5})
		return err == nil && answer.GetExitCode() == 0
	}, 30*time.Second, 50*time.Millisecond)
}

// The pods that somebody else has started at a real containerd are planned for, drained with their own
// hooks and grace periods, and reported. After undrain those that are started then are drained by the host's
// shutdown.
func TestDrainAndUndrain(t *testing.T) {
	server := containerdtest.Start(t, containerdtest.Image{Name: "busybox:1.36", Command: []string{"/bin/sh"}})
	web, dns := pod("shop", "web"), pod("kube-system", "dns")
	ids := []string{kubelettest.Run(t, server.Runtime(), web)["main"], kubelettest.Run(t, server.Runtime(), dns)["main"]}
	for _, id := range ids {
		awaitReady(t, server, id)
	}
	n := newNode(t)
	n.run("--container-runtime-endpoint="+server.Endpoint(), "--priority=shop=0")
	n.awaitHeld()
	n.awaitHealth("ok")

	out, stderr, status := n.tool("plan", "-o", "json")
	require.EqualValues(t, 2, status, "dns gets less than it asks for: "+stderr)
	planned := decode[nodeplan.Document](t, out).Nodes[0]
	require.Len(t, planned.Buckets, 2)
	require.Equal(t, "web", planned.Buckets[0].Pods[0].Name)
	require.EqualValues(t, 7, planned.Buckets[0].Pods[0].GrantedSeconds)
	require.Equal(t, "dns", planned.Buckets[1].Pods[0].Name)
	require.EqualValues(t, 5, planned.Buckets[1].Pods[0].GrantedSeconds, "what its bucket has")

	_, stderr, status = n.tool("undrain")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "this node is not drained")

	out, stderr, status = n.tool("drain", "-o", "json")
	require.Zero(t, status, stderr)
	report := decode[api.Report](t, out)
	require.Len(t, report.Shutdown.Pods, 2)
	require.Equal(t, "web", report.Shutdown.Pods[0].Name)
	for _, p := range report.Shutdown.Pods {
		require.Equal(t, "Graceful", p.Outcome)
	}
	for _, id := range ids {
		require.EqualValues(t, 3, server.Exits()[id].Code, "its hook ran before its signal")
	}
	n.awaitHealth("ok: node is shutting down")

	// The next agent keeps the node drained.
	require.Zero(t, n.agent.terminate())
	n.run("--container-runtime-endpoint="+server.Endpoint(), "--priority=shop=0")
	n.awaitHealth("ok: node is shutting down")
	out, stderr, status = n.tool("undrain")
	require.Zero(t, status, stderr)
	require.Contains(t, out, "The drain is taken back.")
	n.awaitHeld()

	again := pod("shop", "again")
	id := kubelettest.Run(t, server.Runtime(), again)["main"]
	awaitReady(t, server, id)
	n.Prepare(true)
	n.awaitReleased()
	require.EqualValues(t, 3, server.Exits()[id].Code)
	require.Zero(t, n.agent.terminate())
	out, _, status = n.tool("report", "--state-dir="+n.dir+"/state")
	require.Zero(t, status)
	require.Contains(t, out, "shop/again")
}
