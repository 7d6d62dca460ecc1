// Package graceperiod says how long a pod or a container is given to end, and why:
// the answers of the kubelet and of the API server, as plain arithmetic.
//
//	package main
//
//	import (
//		"fmt"
//		"time"
//
//		v1 "k8s.io/api/core/v1"
//
//		"github.com/kubegrace/kubegrace/graceperiod"
//	)
//
//	func main() {
//		pod := &v1.Pod{Spec: v1.PodSpec{
//			TerminationGracePeriodSeconds: ptr.To(int64(30)),
//			Containers:                    []v1.Container{{Name: "web"}},
//		}}
//		web := &pod.Spec.Containers[0]
//
//		grace := graceperiod.ForContainer(pod, web, graceperiod.ReasonUnknown)
//		fmt.Println(grace)                                            // 30
//		fmt.Println(graceperiod.Remaining(grace, 12*time.Second))     // 18, after a preStop hook of 12 s
//		fmt.Println(graceperiod.ForPod(pod, grace, ptr.To(int64(10))))   // 10 true: an eviction shortened it
//		fmt.Println(graceperiod.ExplainPod(pod, grace, ptr.To(int64(10)))) // a sentence with every rule
//	}
//
// # Which function
//
// An API server asks [ForDelete], or [BeforeDelete] for the whole of a delete, or
// takes [PodDeleteStrategy] into its own; [DeleteSeconds] is for one whose pods are not
// those of k8s.io/api. Whoever wants a pod gone asks [ForSoftEviction] or
// [ForNodeShutdown] for the override to send; that of a hard eviction is
// [ImmediateEvictionSeconds]. Whoever ends the pod puts that into [ForPod], and asks [ForContainer] when a
// single container is to go. An override then replaces the container's grace.
// [Remaining] is what is left for the stop after a hook, [KillTimeout] how long to
// wait for the whole kill, [LeftOfDeletion] what an agent that restarted has left.
//
// Every For has an Explain with the same parameters and the same body. Its
// [Explanation] has all rules that were asked, in order, and prints as a sentence.
// Explanations are not chained: an override that came
// out of one function is a bare number to the next.
//
// All numbers are seconds, as in k8s.io/api. A pod, a container and options may be
// nil, and so may their fields; each function says what that gives.
//
// # Concurrency properties
//
// Everything is a pure function of its arguments, there is no state, no clock and
// no goroutine: all may be called at once. Only [BeforeDelete] and
// [PodDeleteStrategy] write, into the pod and the options they are given, because
// that is the API server's contract; the others only read. A plain function
// allocates nothing; its explanation does.
//
// # Failure modes
//
// Every input has a result: nil, 0, negative numbers and the extremes of int64
// neither panic nor overflow. What [ForPod], [Remaining] and [LeftOfDeletion] give
// has a floor; what [ForContainer] and the overrides give is as raw as the field it
// came from, since the kubelet raises it only where it is used. Spans saturate at
// the 292 years of a time.Duration. Where the kubelet would lengthen a grace that
// was already given ([ForPod]) or cut a pod short that it promised to leave alone
// ([ForSoftEviction]), kubegrace does not. Only [BeforeDelete] returns an error, of
// the API server's kinds.
//
// # Testing
//
// There is nothing to fake. Times are arguments: pass a fixed one, or time.Now of a
// testing/synctest bubble.
package graceperiod
