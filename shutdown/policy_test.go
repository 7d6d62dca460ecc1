//go:build go1.25

package shutdown_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// statusAfterShutdown drains a node under a policy, with a pod of the given status. It returns the status of the pod after the
// killer has called SetStatus.
func statusAfterShutdown(t *testing.T, policy shutdown.PodPolicy, status v1.PodStatus) (after v1.PodStatus) {
	t.Helper()
	pod := shutdowntest.Pod("web", regularPriority, 5)
	pod.Status, pod.Generation = status, 7
	inBubble(t, list(pod), func(t *testing.T, n *node) {
		n.opts.Policy = func(source.Kind) shutdown.PodPolicy { return policy }
		n.run()
		n.announce()
		kill, _ := n.killer.Kill("web")
		require.False(t, kill.Request.Evict)
		after = kill.Status
	})
	return after
}

// PolicySetTerminal and PolicyDelete make SetStatus set the kubelet's final status. Only the phase of a pod that has succeeded stays.
func TestThePolicySetsTheFinalStatus(t *testing.T) {
	for _, test := range []struct {
		name         string
		policy       shutdown.PodPolicy
		before, want v1.PodPhase
	}{
		{name: "running", policy: shutdown.PolicySetTerminal, before: v1.PodRunning, want: v1.PodFailed},
		{name: "failed", policy: shutdown.PolicySetTerminal, before: v1.PodFailed, want: v1.PodFailed},
		{name: "succeeded", policy: shutdown.PolicySetTerminal, before: v1.PodSucceeded, want: v1.PodSucceeded},
		{name: "deleted", policy: shutdown.PolicyDelete, before: v1.PodRunning, want: v1.PodFailed},
	} {
		t.Run(test.name, func(t *testing.T) {
			status := statusAfterShutdown(t, test.policy, v1.PodStatus{Phase: test.before})
			require.Equal(t, test.want, status.Phase)
			require.Equal(t, "Terminated", status.Reason)
			require.Equal(t, "Pod was terminated in response to imminent node shutdown.", status.Message)
			require.Len(t, status.Conditions, 1)
			require.NotZero(t, status.Conditions[0].LastTransitionTime)
			status.Conditions[0].LastTransitionTime = metav1.Time{} // it is compared without its time
			require.Equal(t, v1.PodCondition{
				Type:    v1.DisruptionTarget,
				Status:  v1.ConditionTrue,
				Reason:  "TerminationByKubelet",
				Message: "Pod was terminated in response to imminent node shutdown.",

				ObservedGeneration: 7,
			}, status.Conditions[0])
		})
	}
}

// With PolicyLeaveAsIs SetStatus changes nothing.
func TestPolicyLeaveAsIsKeepsTheStatus(t *testing.T) {
	running := v1.PodStatus{Phase: v1.PodRunning}
	require.Equal(t, running, statusAfterShutdown(t, shutdown.PolicyLeaveAsIs, running))
}

// The pod already has a DisruptionTarget condition, with another reason and a zero transition time. The condition is
// overwritten. If its status was true already, it keeps the transition time.
func TestThePolicyOverwritesAnExistingCondition(t *testing.T) {
	for _, old := range []v1.ConditionStatus{v1.ConditionTrue, v1.ConditionFalse} {
		condition := v1.PodCondition{Type: v1.DisruptionTarget, Status: old, Reason: "EvictionByEvictionAPI"}
		ready := v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue}
		status := statusAfterShutdown(t, shutdown.PolicySetTerminal, v1.PodStatus{Conditions: []v1.PodCondition{ready, condition}})
		require.Len(t, status.Conditions, 2)
		require.Equal(t, ready, status.Conditions[0])
		require.Equal(t, "TerminationByKubelet", status.Conditions[1].Reason)
		isKept := status.Conditions[1].LastTransitionTime.IsZero()
		require.Equal(t, old == v1.ConditionTrue, isKept)
	}
}

// flushedUnder drains a node under a policy, with pods that end as their behaviours say. It returns the pods with their final
// status, as the manager has sent them to the API server (FlushPod), by name, and the report.
func flushedUnder(t *testing.T, policy shutdown.PodPolicy, behaviours map[string]shutdowntest.Behaviour, pods ...*v1.Pod) (final map[string]*v1.Pod, report shutdown.Report) {
	t.Helper()
	final = map[string]*v1.Pod{}
	inBubble(t, pods, func(_ *testing.T, n *node) {
		n.killer.Pods = behaviours
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter = reporter
		n.opts.Policy = func(source.Kind) shutdown.PodPolicy { return policy }
		n.run()
		n.announce()
		n.advance(time.Minute)
		for _, call := range reporter.Flushed() {
			final[call.Final.Name] = call.Final
		}
		report = n.lastReport()
	})
	return final, report
}

// daemonSetPod returns a pod that a DaemonSet controls.
func daemonSetPod(name string) *v1.Pod {
	pod := shutdowntest.Pod(name, regularPriority, 5)
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: name, Controller: ptr.To(true)}}
	return pod
}

// mirrorPod returns the API server's copy of a static pod.
func mirrorPod(name string) *v1.Pod {
	pod := shutdowntest.Pod(name, regularPriority, 5)
	pod.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "hash"}
	return pod
}

// deletedPod returns a pod with a deletion timestamp.
func deletedPod(name string) *v1.Pod {
	pod := shutdowntest.Pod(name, regularPriority, 5)
	pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return pod
}

// FlushPod gets each pod as Failed, with the kubelet's reason and condition, on top of the status that the killer returned or, if it
// returned none, of the listed one. A pod that has succeeded stays so. No pod of the caller changes.
func TestAFlushedPodHasTheFinalStatus(t *testing.T) {
	ended := v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{Name: "main"}}}
	web, job, plain := shutdowntest.Pod("web", regularPriority, 5), shutdowntest.Pod("job", regularPriority, 5), shutdowntest.Pod("plain", regularPriority, 5)
	final, report := flushedUnder(t, shutdown.PolicySetTerminal, map[string]shutdowntest.Behaviour{
		"web": {Status: &ended},
		"job": {Status: &v1.PodStatus{Phase: v1.PodSucceeded}},
	}, web, job, plain)
	require.Equal(t, v1.PodFailed, final["web"].Status.Phase)
	require.Equal(t, "Terminated", final["web"].Status.Reason)
	require.Equal(t, ended.ContainerStatuses, final["web"].Status.ContainerStatuses)
	require.Equal(t, v1.PodSucceeded, final["job"].Status.Phase, "Succeeded is kept")
	require.Equal(t, v1.PodFailed, final["plain"].Status.Phase)
	require.Equal(t, v1.DisruptionTarget, final["plain"].Status.Conditions[0].Type)
	for _, pod := range []*v1.Pod{web, job, plain} {
		require.Equal(t, v1.PodRunning, pod.Status.Phase, "the caller's pods are not changed")
		require.Empty(t, pod.Status.Conditions)
		require.Nil(t, final[pod.Name].DeletionTimestamp, "only PolicyDelete sets it")
	}
	require.Equal(t, v1.PodRunning, ended.Phase, "nor the killer's status")
	require.Empty(t, report.Errors)
}

// FlushPod changes the pod that it gets. The listed pod does not change, because they share no memory.
func TestAFlushedPodIsACopy(t *testing.T) {
	pod := shutdowntest.Pod("web", regularPriority, 5)
	pod.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "main", Ready: true}}
	inBubble(t, list(pod), func(t *testing.T, n *node) {
		n.opts.Reporter = flushFunc(func(final *v1.Pod) error {
			final.Status.ContainerStatuses[0].Ready = false
			return nil
		})
		n.run()
		n.announce()
		n.advance(time.Minute)
		require.True(t, pod.Status.ContainerStatuses[0].Ready)
	})
}

// With PolicyLeaveAsIs only pods with a deletion timestamp get a final status, which the manager sends with FlushPod: gone
// becomes Failed. web keeps its status, so there is none to send. Unflushed is false for both: no final status is missing.
func TestPolicyLeaveAsIsFlushesOnlyDeletedPods(t *testing.T) {
	final, report := flushedUnder(t, shutdown.PolicyLeaveAsIs, nil, shutdowntest.Pod("web", regularPriority, 5), deletedPod("gone"))
	require.Len(t, final, 1)
	require.Equal(t, v1.PodFailed, final["gone"].Status.Phase, "it does not come back")
	require.Equal(t, time.Unix(1, 0), final["gone"].DeletionTimestamp.Time)
	for _, pod := range report.Pods {
		require.False(t, pod.Unflushed, pod.Name)
	}
}

// PolicyDelete skips static pods and pods that a DaemonSet controls, like kubectl drain. The pod "owned" is deleted:
// a DaemonSet is among its owners, but a ReplicaSet controls it.
func TestPolicyDeleteSkipsStaticAndDaemonSetPods(t *testing.T) {
	other := shutdowntest.Pod("owned", regularPriority, 5)
	other.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "owned", Controller: ptr.To(true)}, {Kind: "DaemonSet", Name: "owned"}}
	web := shutdowntest.Pod("web", regularPriority, 5)
	final, _ := flushedUnder(t, shutdown.PolicyDelete, nil, web, other, daemonSetPod("agent"), mirrorPod("etcd"), deletedPod("gone"))
	require.Len(t, final, 3)
	for _, name := range []string{"web", "owned"} {
		require.Equal(t, v1.PodFailed, final[name].Status.Phase, name)
		require.False(t, final[name].DeletionTimestamp.IsZero(), name)
		require.EqualValues(t, 5, *final[name].DeletionGracePeriodSeconds, name)
	}
	require.Equal(t, time.Unix(1, 0), final["gone"].DeletionTimestamp.Time, "the existing timestamp is kept")
	require.Nil(t, web.DeletionTimestamp)
}

// Options.Policy returns an unknown policy, or panics. The report says so, and PolicySetTerminal is used.
func TestAnUnusablePolicyIsReported(t *testing.T) {
	for want, policy := range map[string]func(source.Kind) shutdown.PodPolicy{
		`unknown pod policy "Restart" for a shutdown of kind "reboot", using SetTerminal`: func(source.Kind) shutdown.PodPolicy { return "Restart" },
		"failed to get the pod policy, using SetTerminal: Options.Policy panicked: a bug": func(source.Kind) shutdown.PodPolicy { panic("a bug") },
	} {
		inBubble(t, list(shutdowntest.Pod("web", regularPriority, 5)), func(t *testing.T, n *node) {
			reporter := &shutdowntest.Reporter{}
			n.opts.Reporter = reporter
			n.opts.Policy = policy
			n.run()
			n.host.Announce(source.Event{Kind: source.KindReboot})
			synctest.Wait()
			n.advance(time.Minute)
			require.Equal(t, v1.PodFailed, reporter.Flushed()[0].Final.Status.Phase)
			require.Contains(t, n.lastReport().Errors, want)
		})
	}
}

// leaveAsIsForReboots is PolicyLeaveAsIs for reboots, and PolicySetTerminal for all else.
func leaveAsIsForReboots(kind source.Kind) shutdown.PodPolicy {
	if kind == source.KindReboot {
		return shutdown.PolicyLeaveAsIs
	}
	return shutdown.PolicySetTerminal
}

// Trigger announces a shutdown of an unknown kind, and 1 s later the host announces a reboot. The shutdown becomes a reboot. So
// critical, which is killed when web ends, at 3 s, keeps its status. web was killed before, and gets a final status.
func TestTheKindOfTheHostDecidesOnThePolicy(t *testing.T) {
	pods := list(shutdowntest.Pod("web", regularPriority, 5), shutdowntest.Pod("critical", criticalPriority, 5))
	inBubble(t, pods, func(t *testing.T, n *node) {
		n.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Takes: 3 * time.Second}}
		n.opts.Policy = leaveAsIsForReboots
		n.run()
		require.NoError(t, n.m.Trigger(source.Event{}))
		n.advance(time.Second)
		n.host.Announce(source.Event{Kind: source.KindReboot})
		n.advance(time.Minute)
		require.Equal(t, source.KindReboot, n.lastReport().Kind)
		web, _ := n.killer.Kill("web")
		critical, _ := n.killer.Kill("critical")
		require.Equal(t, v1.PodFailed, web.Status.Phase)
		require.Equal(t, v1.PodRunning, critical.Status.Phase)
	})
}

// Trigger announces a reboot, and 1 s later the host announces that it switches the machine off. At 2 s the host cancels that,
// and the shutdown is a reboot again. So critical, which is killed when web ends, at 3 s, keeps its status.
func TestTheKindOfACancelledAnnouncementDecidesNothing(t *testing.T) {
	pods := list(shutdowntest.Pod("web", regularPriority, 5), shutdowntest.Pod("critical", criticalPriority, 5))
	inBubble(t, pods, func(t *testing.T, n *node) {
		n.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Takes: 3 * time.Second}}
		n.opts.Policy = leaveAsIsForReboots
		n.run()
		require.NoError(t, n.m.Trigger(source.Event{Kind: source.KindReboot}))
		n.advance(time.Second)
		n.host.Announce(source.Event{Kind: source.KindPoweroff})
		n.advance(time.Second)
		n.host.Cancel()
		n.advance(time.Minute)
		require.Equal(t, source.KindReboot, n.lastReport().Kind)
		critical, _ := n.killer.Kill("critical")
		require.Equal(t, v1.PodRunning, critical.Status.Phase)
	})
}
