package command_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/apistatus"
)

func TestPodsAreShownAsMirrorPods(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 5)
	pods := map[string]string{"web.yaml": scripted("web", "")}
	p := c.run(pods)
	c.waitReady("web")
	p.waitFor("1 of 1 pods run.")

	pod, node := c.pod("web"), c.Node()
	require.Equal(t, nodeName, pod.Spec.NodeName)
	require.Equal(t, "file", pod.Annotations["kubernetes.io/config.source"])
	require.NotEmpty(t, pod.Annotations["kubernetes.io/config.hash"])
	require.Equal(t, pod.Annotations["kubernetes.io/config.hash"], pod.Annotations["kubernetes.io/config.mirror"])
	_, err := time.Parse(time.RFC3339Nano, pod.Annotations["kubernetes.io/config.seen"])
	require.NoError(t, err)
	require.Len(t, pod.OwnerReferences, 1)
	require.Equal(t, node.UID, pod.OwnerReferences[0].UID)
	require.Equal(t, v1.PodRunning, pod.Status.Phase)
	for _, conditionType := range []v1.PodConditionType{v1.PodReady, v1.ContainersReady, v1.PodInitialized, v1.PodScheduled} {
		require.Equal(t, v1.ConditionTrue, conditionOf(pod, conditionType).Status, conditionType)
	}
	require.Len(t, pod.Status.ContainerStatuses, 1)
	require.NotNil(t, pod.Status.ContainerStatuses[0].State.Running)
	require.Equal(t, pod.Status.ContainerStatuses[0].State.Running.StartedAt, *pod.Status.StartTime)

	p.signal(os.Interrupt)
	require.Zero(t, p.waitExit())
	require.Contains(t, p.out.String(), "default/web-"+nodeName)
	require.Equal(t, v1.PodRunning, c.pod("web").Status.Phase, "an agent that leaves does not change the statuses of its pods")
	require.Equal(t, v1.ConditionTrue, c.nodeCondition(v1.NodeReady).Status)
}

// The mirror pod of an older manifest is replaced. As in a kubelet, an annotation has the
// hash of the manifest.
func TestMirrorPodOfAChangedManifestIsReplaced(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 5)
	p := c.run(map[string]string{"web.yaml": scripted("web", "")})
	c.waitReady("web")
	p.signal(os.Interrupt)
	require.Zero(t, p.waitExit())
	before := c.pod("web")

	c.run(map[string]string{"web.yaml": strings.Replace(scripted("web", ""), "60", "61", 1)})
	c.waitReplaced(before)
	c.waitReady("web")
	require.EqualValues(t, 61, *c.pod("web").Spec.TerminationGracePeriodSeconds)
}

// A pod that somebody else has created with the name of a mirror pod is not deleted.
func TestPodThatIsNoMirrorPodIsLeftAlone(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 5)
	other := &v1.Pod{Spec: v1.PodSpec{NodeName: nodeName}}
	other.Namespace, other.Name = "default", "web-"+nodeName
	other = c.CreatePod(other)
	p := c.run(map[string]string{"web.yaml": scripted("web", ""), "db.yaml": scripted("db", "")})
	c.waitReady("db")
	c.eventually("an error is logged", func() bool { return strings.Contains(p.stderr.String(), "is no mirror pod, and is left alone") })
	require.Zero(t, p.terminate())
	require.Equal(t, other, c.pod("web"))
}

func TestShutdownIsReportedInOrder(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 8)
	checks := make(chan func(), 2) // of what the hooks see; require needs the goroutine of the test
	for _, name := range []string{"web", "stubborn"} {
		c.onHook(name, func() {
			ready, progress := c.nodeCondition(v1.NodeReady), c.nodeCondition(apistatus.NodeGracefulNodeShutdownInProgress)
			web, stubborn := conditionOf(c.pod("web"), v1.PodReady), conditionOf(c.pod("stubborn"), v1.PodReady)
			checks <- func() {
				require.Equal(t, v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionFalse, Reason: "KubeletNotReady", Message: "node is shutting down"}, ready)
				require.Equal(t, v1.ConditionTrue, progress.Status)
				require.Equal(t, v1.ConditionFalse, web.Status, "a pod is not ready before any hook of its bucket runs")
				require.Equal(t, v1.ConditionFalse, stubborn.Status)
			}
		})
	}
	p := c.run(map[string]string{
		"web.yaml":      c.scriptedWithHook("web", "exits 10ms after TERM"),
		"stubborn.yaml": strings.Replace(c.scriptedWithHook("stubborn", "ignores TERM"), "60", "1", 1),
		"job.yaml":      scripted("job", "exits by itself after 10ms") + "  restartPolicy: Never\n",
	})
	c.waitReady("web", "stubborn")
	c.eventually("the job is complete", func() bool {
		job := c.pod("job")
		return job != nil && job.Status.Phase == v1.PodSucceeded
	})
	require.Equal(t, v1.ConditionFalse, conditionOf(c.pod("job"), v1.PodReady).Status)

	require.Zero(t, p.terminate(), p.stderr.String())
	require.Len(t, checks, 2)
	(<-checks)()
	(<-checks)()
	require.NotContains(t, p.out.String(), "API server")
	require.Equal(t, []string{"/stubborn", "/web"}, c.calledHooks())

	requireTerminated(t, c.pod("web"), 0)
	requireTerminated(t, c.pod("stubborn"), 137)
	job := c.pod("job")
	require.Equal(t, v1.PodSucceeded, job.Status.Phase, "a pod that has succeeded stays so")
	require.EqualValues(t, 0, job.Status.ContainerStatuses[0].State.Terminated.ExitCode)
	require.Equal(t, v1.ConditionFalse, c.nodeCondition(v1.NodeReady).Status)
	requireEvents(t, c)
}

// requireTerminated checks that a pod has the final status that a kubelet sets in a
// shutdown.
func requireTerminated(t *testing.T, pod *v1.Pod, code int32) {
	t.Helper()
	const message = "Pod was terminated in response to imminent node shutdown."
	require.Equal(t, v1.PodFailed, pod.Status.Phase)
	require.Equal(t, "Terminated", pod.Status.Reason)
	require.Equal(t, message, pod.Status.Message)
	disrupted := conditionOf(pod, v1.DisruptionTarget)
	require.Equal(t, v1.ConditionTrue, disrupted.Status)
	require.Equal(t, "TerminationByKubelet", disrupted.Reason)
	require.Equal(t, v1.ConditionFalse, conditionOf(pod, v1.PodReady).Status)
	require.Len(t, pod.Status.ContainerStatuses, 1)
	ended := pod.Status.ContainerStatuses[0].State.Terminated
	require.NotNil(t, ended)
	require.Equal(t, code, ended.ExitCode)
	require.False(t, ended.FinishedAt.Before(&ended.StartedAt))
	require.NotEmpty(t, ended.ContainerID)
	require.Nil(t, pod.DeletionTimestamp)
}

// requireEvents checks the events of the node and of the pods. kubectl finds the events of a
// mirror pod by its hash, which is their UID.
func requireEvents(t *testing.T, c *cluster) {
	t.Helper()
	var node, killing []v1.Event
	for _, event := range c.Events() {
		switch event.Reason {
		case "Shutdown":
			node = append(node, event)
		case "Killing":
			killing = append(killing, event)
		}
	}
	require.Len(t, node, 1)
	require.Equal(t, "Shutdown manager detected shutdown event", node[0].Message)
	require.Equal(t, nodeName, node[0].InvolvedObject.Name)
	require.NotEmpty(t, killing)
	for _, event := range killing {
		pod := c.Pod(event.InvolvedObject.Namespace, event.InvolvedObject.Name)
		require.NotNil(t, pod)
		require.EqualValues(t, pod.Annotations["kubernetes.io/config.mirror"], event.InvolvedObject.UID)
		require.Equal(t, "spec.containers{app}", event.InvolvedObject.FieldPath)
	}
}

func TestNextAgentReportsTheNodeAsReady(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"with a state": {"--state-dir=" + t.TempDir()}, "without": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startCluster(t, 5)
			pods := map[string]string{"web.yaml": scripted("web", "")}
			p := c.run(pods, args...)
			c.waitReady("web")
			require.Zero(t, p.terminate(), p.stderr.String())
			ended := c.pod("web")
			requireTerminated(t, ended, 0)
			require.Equal(t, v1.ConditionTrue, c.nodeCondition(apistatus.NodeGracefulNodeShutdownInProgress).Status)

			c.run(pods, args...)
			c.waitReplaced(ended)
			c.waitReady("web")
			c.eventually("the node is ready", func() bool { return c.nodeCondition(v1.NodeReady).Status == v1.ConditionTrue })
			c.eventually("the node does not shut down", func() bool {
				return c.nodeCondition(apistatus.NodeGracefulNodeShutdownInProgress).Status == v1.ConditionFalse
			})
		})
	}
}

// With these policies a shutdown neither changes the phase of a mirror pod nor deletes it.
func TestPoliciesThatLeaveMirrorPods(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"LeaveAsIs", "Delete"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			c := startCluster(t, 5)
			p := c.run(map[string]string{"web.yaml": c.scriptedWithHook("web", "")}, "--pod-policy=poweroff="+policy+",default=SetTerminal")
			c.waitReady("web")
			before := c.pod("web")
			require.Zero(t, p.terminate(), p.stderr.String())
			require.Equal(t, []string{"/web"}, c.calledHooks())
			after := c.pod("web")
			require.Equal(t, before.UID, after.UID)
			require.Nil(t, after.DeletionTimestamp)
			require.Equal(t, v1.PodRunning, after.Status.Phase)
			require.Empty(t, after.Status.Reason)
			require.Equal(t, v1.ConditionFalse, conditionOf(after, v1.PodReady).Status, "the pod is not ready")
			for _, request := range c.Requests() {
				require.NotEqual(t, "delete", request.Verb)
			}
		})
	}
}
