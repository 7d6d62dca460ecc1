//go:build go1.25

package apistatus_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubegrace/kubegrace/internal/apiserverproxy"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
)

// reporterOf returns a reporter with a client and a RequestTimeout.
func reporterOf(t testing.TB, client kubernetes.Interface, timeout time.Duration) *apistatus.Reporter {
	t.Helper()
	r, err := apistatus.New(apistatus.Options{Client: client, NodeName: nodeName, RequestTimeout: timeout})
	require.NoError(t, err)
	return r
}

// tenAtATime calls a function for the pods, ten at a time, as a shutdown does.
func tenAtATime(t testing.TB, pods []*v1.Pod, call func(context.Context, *v1.Pod) error) []error {
	results := make([]error, len(pods))
	next := make(chan int)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for i := range next {
				results[i] = call(t.Context(), pods[i])
			}
		})
	}
	for i := range pods {
		next <- i
	}
	close(next)
	wg.Wait()
	return results
}

// beforeFirst makes a race certain: it calls a function when the first request with this method arrives, before the
// server gets the request.
func beforeFirst(server *realServer, method string, call func()) {
	var once sync.Once
	server.Script(func(r apiserverproxy.Request) apiserverproxy.Fault {
		if r.Method == method {
			once.Do(call)
		}
		return apiserverproxy.Fault{}
	})
}

// Just before a request of FlushPod arrives at the API server, the pod is replaced by a new one with the same name. The new
// pod must keep running and stay ready. MarkNotReady and RestoreReadiness for the previous pod do not change it either.
func TestAReplacementPodIsNotChanged(t *testing.T) {
	for _, method := range []string{http.MethodPatch, http.MethodDelete} {
		t.Run(method, func(t *testing.T) {
			web := running("web")
			server, r := serve(t, web)
			beforeFirst(server, method, func() { server.recreate(running("web")) })
			require.NoError(t, r.FlushPod(t.Context(), deleted(ended(web))))
			got := server.pod("web") // the new one
			require.Equal(t, v1.PodRunning, got.Status.Phase)
			require.NotEqual(t, web.UID, got.UID)
			require.Nil(t, got.DeletionTimestamp)
			require.NoError(t, r.MarkNotReady(t.Context(), web))
			require.NoError(t, r.RestoreReadiness(t.Context(), web))
			require.Equal(t, v1.ConditionTrue, readyOf(server.pod("web")).Status)
		})
	}
}

// readyOf returns the Ready condition of a pod.
func readyOf(pod *v1.Pod) v1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodReady {
			return c
		}
	}
	return v1.PodCondition{}
}

// The pod was marked as not ready, and ends between the read and the write of RestoreReadiness (beforeFirst). The write must
// fail, and the next attempt must leave the ended pod as it is.
func TestRestoreReadinessFailsOnAConflict(t *testing.T) {
	web := running("web")
	server, r := serve(t, web)
	require.NoError(t, r.MarkNotReady(t.Context(), web))
	require.Equal(t, "Pod is being terminated by its node.", readyOf(server.pod("web")).Message)
	beforeFirst(server, http.MethodPatch, func() { server.setStatus(ended(web)) })
	require.ErrorContains(t, r.RestoreReadiness(t.Context(), web), "the object has been modified")
	require.NoError(t, r.RestoreReadiness(t.Context(), web), "another attempt")
	require.Equal(t, v1.PodFailed, server.pod("web").Status.Phase)
}

// PublishNode reverts the conditions of a shutdown, on a real API server. Between its read and its write another writer
// reports the node as broken. That condition must stay.
func TestPublishNodeKeepsAConditionWrittenInBetween(t *testing.T) {
	broken := conditionText{v1.NodeReady, v1.ConditionFalse, "KubeletNotReady", "container runtime is down"}
	server, r := serve(t, nodeOf(notReady, rebooting))
	beforeFirst(server, http.MethodPatch, func() { server.setNodeStatus(nodeOf(broken, rebooting)) })
	require.NoError(t, r.PublishNode(t.Context(), notShuttingDown))
	require.Equal(t, []conditionText{broken, noShutdown}, conditionTexts(server.node().Status.Conditions))
}

// Each method of the reporter is called once, with a real API server. Together they send exactly these requests, which tell
// an operator what RBAC rules the agent needs.
func TestEachMethodSendsOnlyItsRequests(t *testing.T) {
	web := running("web")
	server, r := serve(t, web, nodeOf(ready))
	require.NoError(t, r.PublishNode(t.Context(), reboot))
	require.NoError(t, r.MarkNotReady(t.Context(), web))
	require.NoError(t, r.RestoreReadiness(t.Context(), web))
	require.NoError(t, r.FlushPod(t.Context(), deleted(ended(web))))
	var sent []string
	for _, request := range server.Requests() {
		sent = append(sent, strings.TrimSpace(request.Method+" "+request.Path+" "+request.ContentType))
		require.Equal(t, http.StatusOK, request.Status)
	}
	const merge = " application/strategic-merge-patch+json"
	require.Equal(t, []string{
		"GET /api/v1/nodes/node-1", "PATCH /api/v1/nodes/node-1/status" + merge,
		"PATCH /api/v1/namespaces/default/pods/web/status" + merge,
		"GET /api/v1/namespaces/default/pods/web", "PATCH /api/v1/namespaces/default/pods/web/status" + merge,
		"PATCH /api/v1/namespaces/default/pods/web/status" + merge, "DELETE /api/v1/namespaces/default/pods/web application/json",
	}, sent)
	require.Empty(t, server.pods())
}

// The agent flushes a pod that it has marked as not ready, and knows the exit code of only one of its two containers. The
// other one is written as ended with an unknown code. The pod is Failed and not ready, with the generation that the agent
// knows; the conditions of other programs and the IP stay. A second FlushPod changes nothing.
func TestFinalStatusOnARealServer(t *testing.T) {
	web := running("web")
	web.Spec.Containers = append(web.Spec.Containers, v1.Container{Name: "logs", Image: "logs:1"})
	web.Status.ContainerStatuses = []v1.ContainerStatus{statusFromWord("app", runs), statusFromWord("logs", runs)}
	server, r := serve(t, web)
	pod := ended(web)
	pod.Generation = server.pod("web").Generation
	pod.Status.ContainerStatuses[0] = statusFromWord("app", sigterm)
	require.NoError(t, r.MarkNotReady(t.Context(), web))
	require.NoError(t, r.FlushPod(t.Context(), pod))
	got := server.pod("web").Status
	require.Equal(t, []string{sigterm, unknown}, wordsFromStatuses(t, got.ContainerStatuses))
	require.Equal(t, v1.PodFailed, got.Phase)
	require.EqualValues(t, 1, got.ObservedGeneration)
	require.Equal(t, "10.0.0.7", got.PodIP)
	require.ElementsMatch(t, []conditionSummary{ // type, status, reason, observed generation, whether the transition time is new
		{v1.PodScheduled, v1.ConditionTrue, "", 0, false},
		{"example.com/gate", v1.ConditionTrue, "", 0, false},
		{v1.PodReady, v1.ConditionFalse, "PodFailed", 1, true},
		{v1.ContainersReady, v1.ConditionFalse, "PodFailed", 1, true},
		{v1.DisruptionTarget, v1.ConditionTrue, "TerminationByKubelet", 1, true},
	}, conditionSummaries(got))
	require.Empty(t, readyOf(server.pod("web")).Message, "that of MarkNotReady is gone")
	require.NoError(t, r.FlushPod(t.Context(), pod), "again")
	require.Equal(t, v1.PodFailed, server.pod("web").Status.Phase)
}
