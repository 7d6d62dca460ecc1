package shutdown

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/podcondition"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

const (
	// terminatedReason is the status reason of a pod that a node shutdown terminated (the kubelet's
	// nodeShutdownReason).
	terminatedReason = "Terminated"
	// terminatedMessage is the message of such a pod and of its DisruptionTarget condition (the
	// kubelet's nodeShutdownMessage).
	terminatedMessage = "Pod was terminated in response to imminent node shutdown."
)

// PodPolicy says what happens to the status of the pods that a shutdown killed.
type PodPolicy string

const (
	// PolicySetTerminal sets the phase to Failed unless it is Succeeded, with the kubelet's reason,
	// message and DisruptionTarget condition. It is the default.
	PolicySetTerminal PodPolicy = "SetTerminal"
	// PolicyLeaveAsIs leaves the status unchanged, for a node that starts again with the same pods.
	// A pod with a deletion timestamp does not start again: PolicySetTerminal applies to it.
	PolicyLeaveAsIs PodPolicy = "LeaveAsIs"
	// PolicyDelete sets the status as PolicySetTerminal does, and the Reporter then deletes the pods,
	// as kubectl drain does. PolicyLeaveAsIs applies to static pods and pods of a DaemonSet.
	PolicyDelete PodPolicy = "Delete"
)

// isDaemonSetPod reports whether a DaemonSet controls the pod.
func isDaemonSetPod(pod *v1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

// statusSetter returns a function, never nil, that sets the final status of a pod with this generation. With the policy
// LeaveAsIs the function changes nothing.
func statusSetter(policy node.Policy, generation int64) func(*v1.PodStatus) {
	if policy == node.LeaveAsIs {
		return func(*v1.PodStatus) {}
	}
	return func(status *v1.PodStatus) { setTerminated(status, generation) }
}

// setTerminated sets the final status of a pod with this generation, as the status function in the kubelet's
// killPods does.
func setTerminated(status *v1.PodStatus, generation int64) {
	if status.Phase != v1.PodSucceeded {
		status.Phase = v1.PodFailed
	}
	status.Reason, status.Message = terminatedReason, terminatedMessage
	podcondition.Set(status, v1.PodCondition{
		Type:    v1.DisruptionTarget,
		Status:  v1.ConditionTrue,
		Reason:  v1.PodReasonTerminationByKubelet,
		Message: terminatedMessage,
	}, metav1.Now())
	podcondition.SetObservedGeneration(status, v1.DisruptionTarget, generation)
}

// withFinalStatus returns a copy of a pod with its final status, by the policy of its shutdown. ended is when the pod ended. If
// the pod is to be deleted and has no deletion timestamp, the copy gets ended as its timestamp: that tells the Reporter to delete
// the pod.
func withFinalStatus(p *node.Pod, ended time.Time) *v1.Pod {
	pod, policy := *p.Object, p.FinalPolicy()
	if p.Status != nil {
		pod.Status = *p.Status
	}
	pod.Status = *pod.Status.DeepCopy()
	statusSetter(policy, podcondition.Generation(&pod))(&pod.Status)
	if policy == node.Delete && pod.DeletionTimestamp == nil {
		deleted, gracePeriod := metav1.NewTime(ended), p.GrantedSeconds
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &deleted, &gracePeriod
	}
	return &pod
}

// askPolicies calls Options.Policy for all kinds of shutdown in advance, so that no drain waits for it. If the calls do not
// return within answerTime, PolicySetTerminal is used for all kinds.
func (s *shell) askPolicies(ctx context.Context) {
	kinds := append(source.Kinds(), source.KindUnknown)
	asked := call.Start(ctx, s.calls, "Options.Policy", func(context.Context) (node.Policies, error) { return s.policies(kinds), nil })
	p, err := asked.Await(ctx, time.Now().Add(answerTime))
	if err != nil {
		p = node.Policies{Errors: map[source.Kind]string{}}
		for _, kind := range kinds {
			p.Errors[kind] = fmt.Sprintf("failed to get the pod policy, using %s: %v", PolicySetTerminal, err)
		}
	}
	s.step(p)
}

// policies asks Options.Policy for the pod policies of these kinds of shutdown.
func (s *settings) policies(kinds []source.Kind) node.Policies {
	p := node.Policies{Of: map[source.Kind]node.Policy{}, Errors: map[source.Kind]string{}}
	for _, kind := range kinds {
		policy, err := s.policy(kind)
		p.Of[kind] = node.Policy(policy)
		if err != nil {
			p.Errors[kind] = err.Error()
		}
	}
	return p
}

// policy asks Options.Policy for the pod policy of a kind of shutdown. An error says what is wrong with the answer; the
// returned policy is valid nevertheless.
func (s *settings) policy(kind source.Kind) (PodPolicy, error) {
	policy := s.opts.Policy(kind)
	if policy == PolicyDelete && s.flusher == nil {
		return policy, fmt.Errorf("pod policy %s for a shutdown of kind %q deletes no pod: Options.Reporter is no StatusFlusher", policy, kind)
	}
	if !node.Policy(policy).IsKnown() {
		return PolicySetTerminal, fmt.Errorf("unknown pod policy %q for a shutdown of kind %q, using %s", policy, kind, PolicySetTerminal)
	}
	return policy, nil
}
