// Package graceperiod computes how many seconds a pod or a container has to terminate, and explains the
// result. Its pure functions implement the rules of the kubelet and the API server.
//
//	package main
//
//	import (
//		"fmt"
//		"time"
//
//		v1 "k8s.io/api/core/v1"
//		"k8s.io/utils/ptr"
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
//		fmt.Println(grace)                                                 // 30
//		fmt.Println(graceperiod.Remaining(grace, 12*time.Second))          // 18, after a preStop hook of 12 s
//		fmt.Println(graceperiod.ForPod(pod, grace, ptr.To(int64(10))))     // 10 true: an eviction shortened it
//		fmt.Println(graceperiod.ExplainPod(pod, grace, ptr.To(int64(10)))) // a sentence that says why
//	}
//
// # Which function
//
//   - To read how long a pod will have: [ForPod] with 0 and nil, and [ForContainer] for each container,
//     including sidecars. An eviction and a node shutdown override both. For a manifest without
//     spec.terminationGracePeriodSeconds, set [DefaultSeconds] first, as the API server does. Otherwise the
//     results are the minimums, 1 s and 2 s.
//   - To delete a pod in an API server: [BeforeDelete] is the whole delete, [ForDelete] only its grace
//     period. [PodDeleteStrategy] is a strategy for k8s.io/apiserver. [DeleteSeconds] is for pod types
//     other than *v1.Pod.
//   - To remove a pod from a node: [ForSoftEviction] and [ForNodeShutdown] return the override to send. A
//     hard eviction sends [ImmediateEvictionSeconds].
//   - To terminate a pod in a node agent: [ForPod] takes that override, and [ForContainer] returns the grace
//     period of one container. [Remaining] is the time for the stop after a preStop hook, [KillTimeout] how
//     long to wait for the whole kill, and [LeftOfDeletion] the remaining time after an agent restart.
//
// Each For function has an Explain function with the same parameters. It returns an [Explanation], which
// prints as a sentence that names every grace period that was read.
//
// All int64 numbers are seconds, as in k8s.io/api: for a time.Duration d, pass int64(d/time.Second). Pods,
// containers, options and their fields may be nil.
//
// # Differences from the kubelet
//
// [ForPod] never extends a grace period that the pod already has. A negative maximum of [ForSoftEviction]
// means the pod's own grace period.
//
// # Failures
//
//	what fails                       what happens                          what to do
//	nil, 0, negative or huge values  the result is defined; nothing        nothing
//	                                   panics or overflows
//	a value below the minimum        ForPod, Remaining and LeftOfDeletion  pass overrides and results of
//	                                   raise it; ForContainer and the        ForContainer through these
//	                                   overrides return it unchanged
//	invalid delete options, or a     BeforeDelete returns the API          return it to the client
//	  precondition that is not met     server's error
//
// # Concurrency
//
// All functions may be called concurrently. Only [BeforeDelete] and [PodDeleteStrategy] write to their
// arguments. The For functions do not allocate.
//
// # Testing
//
// The current time is an argument, so there is nothing to fake.
//
// # Stability
//
// v0: minor releases may change exported names; the changelog says how.
package graceperiod
