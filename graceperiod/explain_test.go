package graceperiod_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// The sentence of an explanation names each value that was read, and says why it did or did not decide.
func TestExplanationSentences(t *testing.T) {
	withStartupGrace := podOf(containerWithProbes("app", nil, nil), containerWithProbes("proxy", seconds(10), nil))
	withStartupGrace.Spec.TerminationGracePeriodSeconds = seconds(30)
	withoutSpecGrace := podOf(containerWithProbes("app", nil, seconds(9)))
	finished := scheduledPod(seconds(30))
	finished.Status.Phase = v1.PodFailed

	for name, c := range map[string]struct {
		got  graceperiod.Explanation
		want string
	}{
		"zero Explanation": {got: graceperiod.Explanation{}, want: "The grace period is 0 s."},

		"container, nothing set": {
			got:  graceperiod.ExplainContainer(nil, nil, graceperiod.ReasonUnknown),
			want: "The grace period is 2 s because metadata.deletionGracePeriodSeconds is not set, spec.terminationGracePeriodSeconds is not set, and a container without a grace period gets 2 s.",
		},
		"container, deletion": {
			got:  graceperiod.ExplainContainer(podWithSpecAndDeletion(nil, seconds(5)), nil, graceperiod.ReasonUnknown),
			want: "The grace period is 5 s because metadata.deletionGracePeriodSeconds is 5.",
		},
		"container, probe": {
			got:  graceperiod.ExplainContainer(withStartupGrace, &withStartupGrace.Spec.Containers[1], graceperiod.ReasonStartupProbe),
			want: "The grace period is 10 s because metadata.deletionGracePeriodSeconds is not set and spec.containers[1].startupProbe.terminationGracePeriodSeconds is 10.",
		},
		"container, probe without a grace period": {
			got:  graceperiod.ExplainContainer(withStartupGrace, &withStartupGrace.Spec.Containers[1], graceperiod.ReasonLivenessProbe),
			want: "The grace period is 30 s because metadata.deletionGracePeriodSeconds is not set, spec.containers[1].livenessProbe.terminationGracePeriodSeconds is not set, and spec.terminationGracePeriodSeconds is 30.",
		},
		"container, probe with a grace period but a spec without": {
			got:  graceperiod.ExplainContainer(withoutSpecGrace, &withoutSpecGrace.Spec.Containers[0], graceperiod.ReasonLivenessProbe),
			want: "The grace period is 2 s because metadata.deletionGracePeriodSeconds is not set, spec.containers[0].livenessProbe.terminationGracePeriodSeconds of 9 applies only if the pod's spec has a grace period, spec.terminationGracePeriodSeconds is not set, and a container without a grace period gets 2 s.",
		},

		"pod, shortened twice to the minimum": {
			got:  graceperiod.ExplainPod(podWithSpecAndDeletion(nil, seconds(5)), 20, seconds(0)),
			want: "The grace period is 1 s because the pod already has 20 s, metadata.deletionGracePeriodSeconds is shorter with 5, the override is shorter with 0, and a pod gets at least 1 s.",
		},
		"pod, longer deletion grace period": {
			got:  graceperiod.ExplainPod(podWithSpecAndDeletion(nil, seconds(25)), 20, nil),
			want: "The grace period is 20 s because the pod already has 20 s, metadata.deletionGracePeriodSeconds (25) is not shorter, and the override is not set.",
		},
		"pod, equal override": {
			got:  graceperiod.ExplainPod(podWithSpecAndDeletion(nil, nil), 20, seconds(20)),
			want: "The grace period is 20 s because the pod already has 20 s, metadata.deletionGracePeriodSeconds is not set, and the override (20) is not shorter.",
		},
		"pod, override equal to the minimum": {
			got:  graceperiod.ExplainPod(podWithSpecAndDeletion(nil, nil), 0, seconds(1)),
			want: "The grace period is 1 s because metadata.deletionGracePeriodSeconds is not set and the override is 1.",
		},
		"pod, spec": {
			got:  graceperiod.ExplainPod(podWithSpecAndDeletion(seconds(30), nil), 0, nil),
			want: "The grace period is 30 s because metadata.deletionGracePeriodSeconds is not set, the override is not set, and spec.terminationGracePeriodSeconds is 30.",
		},
		"pod, override longer than the current grace period": {
			got:  graceperiod.ExplainPod(podWithSpecAndDeletion(nil, seconds(0)), 20, seconds(60)),
			want: "The grace period is 20 s because the pod already has 20 s, metadata.deletionGracePeriodSeconds is shorter with 0, the override is 60, and a grace period is never extended.",
		},

		"delete, no options": {
			got:  graceperiod.ExplainDelete(nil, nil),
			want: "The grace period is 0 s because there are no delete options.",
		},
		"delete, options": {
			got:  graceperiod.ExplainDelete(scheduledPod(nil), deleteOptions(seconds(7))),
			want: "The grace period is 7 s because options.gracePeriodSeconds is 7.",
		},
		"delete, nothing set": {
			got:  graceperiod.ExplainDelete(scheduledPod(nil), deleteOptions(nil)),
			want: "The grace period is 0 s because options.gracePeriodSeconds is not set, spec.terminationGracePeriodSeconds is not set, and a delete without a grace period is immediate.",
		},
		"delete, not scheduled": {
			got:  graceperiod.ExplainDelete(nil, deleteOptions(seconds(7))),
			want: "The grace period is 0 s because options.gracePeriodSeconds is 7 and spec.nodeName is empty.",
		},
		"delete, finished": {
			got:  graceperiod.ExplainDelete(finished, deleteOptions(nil)),
			want: "The grace period is 0 s because options.gracePeriodSeconds is not set, spec.terminationGracePeriodSeconds is 30, and status.phase says that the pod has finished.",
		},
		"delete, negative": {
			got:  graceperiod.ExplainDelete(scheduledPod(nil), deleteOptions(seconds(-7))),
			want: "The grace period is 1 s because options.gracePeriodSeconds is -7 and a negative grace period becomes 1.",
		},

		"soft eviction, limited": {
			got:  graceperiod.ExplainSoftEviction(podWithSpecAndDeletion(seconds(60), nil), 20),
			want: "The grace period is 20 s because the eviction maximum is 20 and spec.terminationGracePeriodSeconds (60) is not shorter.",
		},
		"soft eviction, shorter spec": {
			got:  graceperiod.ExplainSoftEviction(podWithSpecAndDeletion(seconds(5), nil), 20),
			want: "The grace period is 5 s because the eviction maximum is 20 and spec.terminationGracePeriodSeconds is shorter with 5.",
		},
		"soft eviction, equal spec": {
			got:  graceperiod.ExplainSoftEviction(podWithSpecAndDeletion(seconds(20), nil), 20),
			want: "The grace period is 20 s because the eviction maximum is 20 and spec.terminationGracePeriodSeconds (20) is not shorter.",
		},
		"soft eviction, no limit and no spec": {
			got:  graceperiod.ExplainSoftEviction(nil, -1),
			want: "The grace period is 30 s because the eviction maximum of -1 is no limit, spec.terminationGracePeriodSeconds is not set, and the default is 30.",
		},

		"node shutdown, bucket": {
			got:  graceperiod.ExplainNodeShutdown(podWithSpecAndDeletion(seconds(60), nil), 20),
			want: "The grace period is 20 s because the bucket has 20 s left and spec.terminationGracePeriodSeconds (60) is not shorter.",
		},
		"node shutdown, equal spec": {
			got:  graceperiod.ExplainNodeShutdown(podWithSpecAndDeletion(seconds(20), nil), 20),
			want: "The grace period is 20 s because the bucket has 20 s left and spec.terminationGracePeriodSeconds is 20.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, c.got.String())
		})
	}
}

// An explanation names the container by its path in the pod's spec, be it a pointer into the pod or a copy. A container
// that is not in the pod is called "container".
func TestExplainContainerNamesTheField(t *testing.T) {
	pod := podOf(containerWithProbes("web", nil, nil), containerWithProbes("app", nil, nil))
	pod.Spec.InitContainers = []v1.Container{containerWithProbes("setup", nil, nil), containerWithProbes("proxy", nil, nil)}
	pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon(containerWithProbes("shell", nil, nil))}}
	twins := podOf(containerWithProbes("", nil, nil), containerWithProbes("", nil, nil))
	outsider, copied := containerWithProbes("other", nil, nil), pod.Spec.InitContainers[1]
	for name, c := range map[string]struct {
		pod       *v1.Pod
		container *v1.Container
		want      string
	}{
		"container":                        {pod: pod, container: &pod.Spec.Containers[1], want: "spec.containers[1]"},
		"sidecar":                          {pod: pod, container: &pod.Spec.InitContainers[1], want: "spec.initContainers[1]"},
		"ephemeral container":              {pod: pod, container: (*v1.Container)(&pod.Spec.EphemeralContainers[0].EphemeralContainerCommon), want: "spec.ephemeralContainers[0]"},
		"copy of a sidecar":                {pod: pod, container: &copied, want: "spec.initContainers[1]"},
		"second of two without a name":     {pod: twins, container: &twins.Spec.Containers[1], want: "spec.containers[1]"},
		"container that is not in the pod": {pod: pod, container: &outsider, want: "container"},
		"nil container":                    {pod: pod, container: nil, want: "container"},
		"nil pod":                          {pod: nil, container: &outsider, want: "container"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, graceperiod.ExplainContainer(c.pod, c.container, graceperiod.ReasonLivenessProbe).String(),
				" "+c.want+".livenessProbe.terminationGracePeriodSeconds is not set")
		})
	}
}
