//go:build e2e

package e2e_test

import (
	"bytes"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/internal/machine"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podinfo"
	"github.com/kubegrace/kubegrace/internal/apiserverproxy"
)

const (
	nodeName       = "machine"
	kubeconfigFile = "/etc/kubegrace/kubeconfig"
)

// A machine whose agent has a kubeconfig powers off. Before the first pod ends, the API server must know that
// the node is shutting down. Before logind goes on with the power off, it must have the final status of every
// pod, because after that nobody could send it.
func TestAPIServerHasAllStatusesBeforeThePowerOff(t *testing.T) {
	eachPlatform(t, testAPIServerHasAllStatusesBeforeThePowerOff)
}

// testAPIServerHasAllStatusesBeforeThePowerOff powers off a machine whose pods are on an API server, and
// checks the requests that a proxy before the API server has recorded.
func testAPIServerHasAllStatusesBeforeThePowerOff(t *testing.T, on platform) {
	api := StartCluster(t, nodeName)
	files := map[string]string{
		flagsFile:      "KUBEGRACE_NODE_FLAGS=\"-v=2 --kubeconfig=" + kubeconfigFile + " --node-name=" + nodeName + " --listen=\"\n",
		kubeconfigFile: api.Kubeconfig(),
	}
	pods := testdataPods(t)
	for i := range pods {
		pods[i].Spec.NodeName, pods[i].UID = nodeName, ""
		pods[i] = *api.CreatePod(&pods[i])
		pods[i].Status.Phase = v1.PodRunning
		pods[i].Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
		api.UpdatePodStatus(&pods[i])
	}
	files["/var/lib/kubegrace-node/"+podinfo.File] = "{}" // so the agent can learn priorities and sidecars only from the API server
	m, server, containers := bootAgentWith(t, on, pods, files, (*machine.Machine).ShareNetwork)
	require.Eventually(t, func() bool { // the five buckets of testdata/kubelet.yaml: the agent has learnt the priorities
		buckets := planOf(t, m).Buckets
		return len(buckets) == 5 && len(buckets[0].Pods) == 2 && len(buckets[3].Pods) == 1
	}, 30*time.Second, 200*time.Millisecond)

	m.Run(t, "systemctl", "poweroff")
	m.AwaitPowerOff(t)
	exits, journal := awaitExits(t, server, containers), m.Journal(t)
	logAgent(t, journal)

	t.Run("the node first", func(t *testing.T) { checkNodeIsPublishedFirst(t, api, exits) })
	t.Run("final statuses", func(t *testing.T) { checkFinalStatuses(t, api, exits) })
	t.Run("power off after the last answer", func(t *testing.T) { checkAnsweredBefore(t, api, journal) })
}

// ready reports whether the condition Ready of a pod is true.
func ready(pod v1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodReady && c.Status == v1.ConditionTrue
	})
}

// checkNodeIsPublishedFirst checks that the API server had accepted the node's condition before the first
// container exited, and that it came before the first status of a pod.
func checkNodeIsPublishedFirst(t *testing.T, api *Cluster, exits exitsByName) {
	requests := api.Requests()
	nodePatch := slices.IndexFunc(requests, func(r apiserverproxy.Request) bool {
		return r.String() == "patch nodes/status "+nodeName &&
			bytes.Contains(r.Body, []byte(`"GracefulNodeShutdownInProgress"`)) && bytes.Contains(r.Body, []byte(`"node is shutting down"`))
	})
	require.GreaterOrEqual(t, nodePatch, 0)
	require.Equal(t, http.StatusOK, requests[nodePatch].Status)
	for name, exit := range exits {
		require.True(t, requests[nodePatch].Answered.Before(exit.At), name)
	}
	firstPodPatch := slices.IndexFunc(requests, func(r apiserverproxy.Request) bool {
		return r.Verb == "patch" && bytes.Contains(r.Body, []byte(`"DisruptionTarget"`))
	})
	require.Greater(t, firstPodPatch, nodePatch)
}

// checkFinalStatuses checks that each pod is Failed with the kubelet's reason and message, is not ready, and
// has the exit codes that containerd recorded. It removes from exits what it has found.
func checkFinalStatuses(t *testing.T, api *Cluster, exits exitsByName) {
	pods := api.Pods()
	require.Len(t, pods, podCount)
	for _, pod := range pods {
		require.Equal(t, v1.PodFailed, pod.Status.Phase, pod.Name)
		require.Equal(t, "Terminated", pod.Status.Reason, pod.Name)
		require.Equal(t, "Pod was terminated in response to imminent node shutdown.", pod.Status.Message, pod.Name)
		require.False(t, ready(pod), pod.Name)
		for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			exit, ran := exits[pod.Name+"/"+c.Name]
			if !ran {
				continue // a plain init container, which ended before the shutdown
			}
			require.NotNil(t, c.State.Terminated, "%s/%s", pod.Name, c.Name)
			require.EqualValues(t, exit.Code, c.State.Terminated.ExitCode, "%s/%s", pod.Name, c.Name)
			delete(exits, pod.Name+"/"+c.Name)
		}
	}
	require.Empty(t, exits, "these have no final status")
}

// checkAnsweredBefore checks that the API server had answered the final status of each pod before logind's log
// entry of the shutdown. The times are comparable, because host and machine share a clock.
func checkAnsweredBefore(t *testing.T, api *Cluster, journal []machine.Entry) {
	shutdown, final := shutdownTime(t, journal), 0
	for _, r := range api.Requests() {
		if r.Verb != "patch" || r.Resource != "pods/status" || !bytes.Contains(r.Body, []byte(`"DisruptionTarget"`)) {
			continue
		}
		final++
		require.Equal(t, http.StatusOK, r.Status)
		require.True(t, r.Answered.Before(shutdown), "%v was answered at %v", r, r.Answered)
	}
	require.Equal(t, podCount, final, "one update for each pod")
}
