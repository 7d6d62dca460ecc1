package shutdown

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/podcondition"
	"github.com/kubegrace/kubegrace/internal/podkey"
	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// list calls Options.ListPods and converts the pods for the core (package node). Mistakes in the list are only reported: all
// pods that can be told apart are killed nevertheless.
func (s *shell) list(e node.Effect) {
	var listed []node.Pod
	s.start(e, "Options.ListPods", func(ctx context.Context) error {
		pods, err := s.opts.ListPods(ctx)
		if err != nil {
			return err
		}
		opts, priorityErr := s.priorities(ctx, s.opts.Plan, pods)
		if priorityErr != nil {
			s.step(node.Failed{Text: "failed to get the values of priority classes: " + priorityErr.Error()})
		}
		if slices.ContainsFunc(pods, lacksIdentity) {
			s.step(node.Failed{Text: "Options.ListPods lists a pod that is nil or has neither a UID nor a name: it is not killed"})
		}
		pods = slices.DeleteFunc(slices.Clone(pods), lacksIdentity)
		for _, text := range podsWithTheSameKey(pods) {
			s.step(node.Failed{Text: text})
		}
		listed = make([]node.Pod, 0, len(pods))
		for _, pod := range pods {
			listed = append(listed, listedPod(pod, opts))
		}
		return nil
	}, func(a answer) node.Input { return node.Listed{Call: e.Call, Pods: listed, Err: a.err} })
}

// lacksIdentity reports whether a pod is nil, or has nothing that distinguishes it from other pods.
func lacksIdentity(pod *v1.Pod) bool { return pod == nil || pod.UID == "" && pod.Name == "" }

// podsWithTheSameKey returns an error text for each pod whose key (its UID or, without one, its name) an earlier pod in the list
// has too: the manager takes the two for one pod and kills only one of them. It is no error to list a pod that has a UID twice.
func podsWithTheSameKey(pods []*v1.Pod) (texts []string) {
	firsts := make(map[types.UID]*v1.Pod, len(pods))
	for _, pod := range pods {
		key := podkey.Of(pod)
		first, isKnown := firsts[key]
		if !isKnown {
			firsts[key] = pod
			continue
		}
		haveSameUIDAndName := pod.UID != "" && klog.KObj(first) == klog.KObj(pod)
		if isSamePod := first == pod || haveSameUIDAndName; isSamePod {
			continue
		}
		texts = append(texts, fmt.Sprintf("Options.ListPods lists the pods %s and %s, which are both known as %q: only one of them is killed",
			klog.KObj(first), klog.KObj(pod), key))
	}
	return texts
}

// priorities calls opts.PriorityOf, which may hang, for the priority classes of the pods. It returns a copy of opts whose
// PriorityOf only looks up the results. If these do not come within priorityTime, it returns an error too, and all classes but
// the built-in ones count as unknown.
func (s *shell) priorities(ctx context.Context, opts plan.Options, pods []*v1.Pod) (plan.Options, error) {
	if opts.PriorityOf == nil {
		return opts, nil
	}
	priorityOf := opts.PriorityOf
	asked := call.Start(ctx, s.calls, "Options.Plan.PriorityOf", func(context.Context) (map[string]int32, error) {
		return classValues(pods, priorityOf), nil
	})
	known, err := asked.Await(ctx, time.Now().Add(priorityTime))
	opts.PriorityOf = func(class string) (int32, bool) {
		value, isKnown := known[class]
		return value, isKnown
	}
	return opts, err
}

// classValues returns the values of the priority classes of the pods, by class, as far as priorityOf knows them. It leaves out
// pods that need no class, because they have spec.priority.
func classValues(pods []*v1.Pod, priorityOf func(class string) (int32, bool)) map[string]int32 {
	values := map[string]int32{}
	for _, pod := range pods {
		if pod == nil || pod.Spec.Priority != nil || pod.Spec.PriorityClassName == "" {
			continue
		}
		if value, isKnown := priorityOf(pod.Spec.PriorityClassName); isKnown {
			values[pod.Spec.PriorityClassName] = value
		}
	}
	return values
}

// listedPod converts a listed pod for the core (package node). opts has the values of priority classes.
func listedPod(pod *v1.Pod, opts plan.Options) node.Pod {
	ready := podcondition.Get(&pod.Status, v1.PodReady)
	return node.Pod{
		Key: podkey.Of(pod), Namespace: pod.Namespace, Name: pod.Name, Priority: opts.Priority(pod), Object: pod,
		Static: staticpod.IsOrMirrors(pod), DaemonSet: isDaemonSetPod(pod), Deleted: pod.DeletionTimestamp != nil,
		// An agent sets this reason when it marks the pod as not ready before the kill.
		MayShowNotReady: ready != nil && ready.Status == v1.ConditionFalse && ready.Reason == v1.PodReasonTerminationByKubelet,
	}
}
