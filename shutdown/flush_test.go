//go:build go1.25

package shutdown_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// flushedUnder drains a node under a policy and returns the pods that FlushPod gets, by name.
func flushedUnder(t *testing.T, policy shutdown.PodPolicy, how map[string]shutdowntest.Behaviour, pods ...*v1.Pod) (final map[string]*v1.Pod, report shutdown.Report) {
	t.Helper()
	final = map[string]*v1.Pod{}
	inBubble(t, pods, func(_ *testing.T, n *node) {
		n.killer.Pods = how
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter = reporter
		n.opts.Policy = func(shutdown.Kind) shutdown.PodPolicy { return policy }
		n.run()
		n.announce()
		n.advance(time.Minute)
		for _, call := range reporter.Flushed() {
			final[call.Pod] = call.Final
		}
		report = n.lastReport()
	})
	return final, report
}

// daemonSetPod returns a pod that a DaemonSet controls.
func daemonSetPod(name string) *v1.Pod {
	pod := shutdowntest.Pod(name, 0, 5)
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: name, Controller: ptr.To(true)}}
	return pod
}

// mirrorPod returns the pod that stands for a static one at the API server.
func mirrorPod(name string) *v1.Pod {
	pod := shutdowntest.Pod(name, 0, 5)
	pod.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "hash"}
	return pod
}

// deletedPod returns a pod that was deleted before the shutdown.
func deletedPod(name string) *v1.Pod {
	pod := shutdowntest.Pod(name, 0, 5)
	pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return pod
}

// A flushed pod has the final status, on top of the status that the killer returned.
func TestFlushedPodsAreFinal(t *testing.T) {
	ended := v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{Name: "main"}}}
	web, job, plain := shutdowntest.Pod("web", 0, 5), shutdowntest.Pod("job", 0, 5), shutdowntest.Pod("plain", 0, 5)
	final, report := flushedUnder(t, shutdown.PolicySetTerminal, map[string]shutdowntest.Behaviour{
		"web": {Status: &ended},
		"job": {Status: &v1.PodStatus{Phase: v1.PodSucceeded}},
	}, web, job, plain)
	require.Equal(t, v1.PodFailed, final["web"].Status.Phase)
	require.Equal(t, "Terminated", final["web"].Status.Reason)
	require.Equal(t, ended.ContainerStatuses, final["web"].Status.ContainerStatuses)
	require.Equal(t, v1.PodSucceeded, final["job"].Status.Phase, "is kept")
	require.Equal(t, v1.PodFailed, final["plain"].Status.Phase)
	require.Equal(t, v1.DisruptionTarget, final["plain"].Status.Conditions[0].Type)
	for _, pod := range []*v1.Pod{web, job, plain} {
		require.Equal(t, v1.PodRunning, pod.Status.Phase, "the caller's pods are not changed")
		require.Empty(t, pod.Status.Conditions)
		require.Nil(t, final[pod.Name].DeletionTimestamp)
	}
	require.Equal(t, v1.PodRunning, ended.Phase, "nor the killer's status")
	require.Empty(t, report.Errors)
}

// The reporter may change a flushed pod: it shares no memory with the caller's pod.
func TestFlushedPodIsACopy(t *testing.T) {
	pod := shutdowntest.Pod("web", 0, 5)
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

// Pods with PolicyLeaveAsIs get no final status, unless they were deleted before.
func TestFlushUnderLeaveAsIs(t *testing.T) {
	final, report := flushedUnder(t, shutdown.PolicyLeaveAsIs, nil, shutdowntest.Pod("web", 0, 5), deletedPod("gone"))
	require.Len(t, final, 1)
	require.Equal(t, v1.PodFailed, final["gone"].Status.Phase, "it does not come back")
	require.Equal(t, time.Unix(1, 0), final["gone"].DeletionTimestamp.Time)
	for _, pod := range report.Pods {
		require.False(t, pod.Unflushed, pod.Name)
	}
}

// PolicyDelete spares static pods and pods of a DaemonSet, as kubectl drain does.
func TestFlushUnderDelete(t *testing.T) {
	other := shutdowntest.Pod("owned", 0, 5)
	other.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "owned", Controller: ptr.To(true)}, {Kind: "DaemonSet", Name: "owned"}}
	web := shutdowntest.Pod("web", 0, 5)
	final, _ := flushedUnder(t, shutdown.PolicyDelete, nil, web, other, daemonSetPod("agent"), mirrorPod("etcd"), deletedPod("gone"))
	require.Len(t, final, 3)
	for _, name := range []string{"web", "owned"} {
		require.Equal(t, v1.PodFailed, final[name].Status.Phase, name)
		require.False(t, final[name].DeletionTimestamp.IsZero(), name)
		require.EqualValues(t, 5, *final[name].DeletionGracePeriodSeconds, name)
	}
	require.Equal(t, time.Unix(1, 0), final["gone"].DeletionTimestamp.Time, "that is when it was deleted")
	require.Nil(t, web.DeletionTimestamp)
}

// A pod of a DaemonSet that was deleted before does not come back, so its end is flushed.
func TestFlushOfADeletedDaemonUnderDelete(t *testing.T) {
	pod := daemonSetPod("agent")
	pod.DeletionTimestamp = deletedPod("agent").DeletionTimestamp
	final, _ := flushedUnder(t, shutdown.PolicyDelete, nil, pod)
	require.Equal(t, v1.PodFailed, final["agent"].Status.Phase)
	require.Equal(t, time.Unix(1, 0), final["agent"].DeletionTimestamp.Time)
}

// SetStatus in the kill request follows the policy for the single pod.
func TestSetStatusUnderDelete(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 5), daemonSetPod("agent")), func(t *testing.T, n *node) {
		n.opts.Policy = func(shutdown.Kind) shutdown.PodPolicy { return shutdown.PolicyDelete }
		n.run()
		n.announce()
		web, _ := n.killer.Kill("web")
		agent, _ := n.killer.Kill("agent")
		require.Equal(t, v1.PodFailed, web.Status.Phase)
		require.Equal(t, v1.PodRunning, agent.Status.Phase)
	})
}

// An unknown policy is named in the report, and the default counts.
func TestUnknownPolicy(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter = reporter
		n.opts.Policy = func(shutdown.Kind) shutdown.PodPolicy { return "Restart" }
		n.run()
		n.host.Announce(shutdown.Event{Kind: shutdown.KindReboot})
		synctest.Wait()
		n.advance(time.Minute)
		require.Equal(t, shutdown.PolicySetTerminal, announcements(t, reporter)[0].State.Policy)
		require.Equal(t, v1.PodFailed, reporter.Flushed()[0].Final.Status.Phase)
		require.Contains(t, n.lastReport().Errors, `pod policy "Restart" for a shutdown of kind "reboot" is not known, SetTerminal counts`)
	})
}

// A pod that uses all of its grace period ends a moment after it. It is flushed with its bucket
// all the same, before the next bucket, which may carry the network, is killed.
func TestFlushOfPodsThatUseAllTheirGrace(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("cni", topPriority, 60)), func(t *testing.T, n *node) {
		began := time.Now()
		var killed []time.Duration
		n.opts.Killer = shutdown.PodKillerFunc(func(_ context.Context, _ *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
			killed = append(killed, time.Since(began))
			<-time.After(time.Duration(*req.GracePeriodSeconds)*time.Second + 300*time.Millisecond)
			return shutdown.KillResult{}, nil
		})
		reporter := &shutdowntest.Reporter{FlushTakes: 200 * time.Millisecond}
		n.opts.Reporter = reporter
		n.run()
		n.announce()
		n.advance(time.Minute)
		flushed := reporter.Flushed()
		require.Len(t, flushed, 2)
		require.Equal(t, "web", flushed[0].Pod)
		require.Equal(t, 20500*time.Millisecond, flushed[0].At.Sub(began))
		require.Equal(t, []time.Duration{0, 20500 * time.Millisecond}, killed)
		require.Equal(t, "cni", flushed[1].Pod)
		require.Empty(t, n.lastReport().Errors)
	})
}

// A pod that hangs takes no time from the final statuses of its bucket.
func TestFlushBesideAPodThatHangs(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("stuck", 0, 60)), func(t *testing.T, n *node) {
		n.killer.Pods = map[string]shutdowntest.Behaviour{"stuck": {Hangs: true}}
		reporter := &shutdowntest.Reporter{FlushTakes: 400 * time.Millisecond}
		n.opts.Reporter = reporter
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, "web", reporter.Flushed()[0].Pod)
		require.NoError(t, reporter.Flushed()[0].Err)
		require.Equal(t, 400*time.Millisecond, reporter.Flushed()[0].At.Sub(began), "as it ends, not with its bucket")
	})
}

// A pod that hangs delays the next bucket by half of the reserve for final statuses, which is for
// pods that end at the end of their grace period.
func TestNextBucketDoesNotWaitForTheStatusOfAPodThatHangs(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("stuck", 0, 60), shutdowntest.Pod("cni", topPriority, 60)), func(t *testing.T, n *node) {
		n.killer.Pods = map[string]shutdowntest.Behaviour{"stuck": {Hangs: true}}
		n.opts.Reporter = flusher{&shutdowntest.Reporter{}}
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, 20500*time.Millisecond, n.killedAfter("cni", began))
	})
}

// A reporter that hangs, next to a pod that hangs, delays later buckets by no more than the
// bucket lasts.
func TestFlushThatHangsBesideAPodThatHangs(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("stuck", 0, 60), shutdowntest.Pod("cni", topPriority, 60)), func(t *testing.T, n *node) {
		n.killer.Pods = map[string]shutdowntest.Behaviour{"stuck": {Hangs: true}}
		n.opts.Reporter = flusher{&shutdowntest.Reporter{FlushTakes: time.Hour}}
		n.opts.Plan.PublishTimeout = -1
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, 21*time.Second, n.killedAfter("cni", began), "20 s of its own and 1 s for the statuses")
		require.Equal(t, map[string]int64{"web": 20, "stuck": 20, "cni": 10}, n.grantedSeconds())
	})
}

// flusher is a reporter that marks nothing.
type flusher struct{ r *shutdowntest.Reporter }

func (f flusher) PublishNode(ctx context.Context, state shutdown.NodeState) error {
	return f.r.PublishNode(ctx, state)
}

func (f flusher) FlushPod(ctx context.Context, pod *v1.Pod) error { return f.r.FlushPod(ctx, pod) }

// A pod whose killer failed or hangs may still run. It gets no final status, not even when the
// host goes down.
func TestNoFlushOfAPodThatMayRun(t *testing.T) {
	for name, how := range map[string]shutdowntest.Behaviour{
		"fails": {Takes: time.Second, Err: errors.New("stuck")},
		"hangs": {Hangs: true, Deaf: true},
	} {
		for _, policy := range []shutdown.PodPolicy{shutdown.PolicySetTerminal, shutdown.PolicyDelete} {
			t.Run(name+" "+string(policy), func(t *testing.T) {
				inBubble(t, list(shutdowntest.Pod("web", 0, 5), shutdowntest.Pod("api", 0, 5)), func(t *testing.T, n *node) {
					n.killer.Pods = map[string]shutdowntest.Behaviour{"web": how}
					reporter := &shutdowntest.Reporter{}
					n.opts.Reporter = reporter
					n.opts.Policy = func(shutdown.Kind) shutdown.PodPolicy { return policy }
					n.run()
					n.announce()
					n.advance(time.Hour)
					require.Len(t, reporter.Flushed(), 1)
					require.Equal(t, "api", reporter.Flushed()[0].Pod)
					require.True(t, n.lastReport().Pods[0].Unflushed)
				})
			})
		}
	}
}

// A pod that ends after the release of the host is flushed as long as the agent runs.
func TestFlushOfAStraggler(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Hangs: true, Deaf: true}
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter = reporter
		n.run()
		n.announce()
		n.advance(time.Minute)
		require.Empty(t, reporter.Flushed())
		require.Zero(t, n.host.Held())
		n.killer.Release()
		n.advance(time.Second)
		require.Len(t, reporter.Flushed(), 1)
	})
}

// A later agent tells of the pods of a former one what that would have told: all of their containers
// are there, and a pod of a DaemonSet is left as it is, listed or not.
func TestFlushOfAFormerAgentsPods(t *testing.T) {
	for name, id := range map[string]string{"on the same boot": "one", "after a reboot": "two"} {
		t.Run(name, func(t *testing.T) {
			web, daemon := shutdowntest.Pod("web", 0, 5), daemonSetPod("daemon")
			web.Spec.InitContainers = []v1.Container{{Name: "init"}, {Name: "sidecar", RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)}}
			web.Spec.Containers = []v1.Container{{Name: "main"}}
			web.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug"}}}
			inBubbleWithState(t, list(web, daemon), func(t *testing.T, n *node, one *boot) {
				n.killer.Default = shutdowntest.Behaviour{Hangs: true, Err: errors.New("the agent ends")} // they may run on
				n.opts.Policy = func(shutdown.Kind) shutdown.PodPolicy { return shutdown.PolicyDelete }
				n.opts.Reporter = &shutdowntest.Reporter{}
				n.runOnBoot(one)
				n.announce()
				n.advance(time.Second)
				n.end()

				reporter := &shutdowntest.Reporter{}
				other := n.startOther(nil, &boot{id: id, began: one.began}, func(other *node) {
					other.opts.Policy, other.opts.Reporter = n.opts.Policy, reporter
				})
				defer other.end()
				if id == one.id {
					other.host.Announce(shutdown.Event{})
				}
				other.advance(time.Minute)
				require.Len(t, reporter.Flushed(), 1, "without the daemon")
				final := reporter.Flushed()[0].Final
				require.Equal(t, "web", final.Name)
				require.NotNil(t, final.DeletionTimestamp)
				var names []string
				for _, c := range final.Spec.InitContainers {
					names = append(names, c.Name)
				}
				for _, c := range final.Spec.Containers {
					names = append(names, c.Name)
				}
				for _, c := range final.Spec.EphemeralContainers {
					names = append(names, c.Name)
				}
				require.Equal(t, []string{"init", "sidecar", "main", "debug"}, names)
			})
		})
	}
}
