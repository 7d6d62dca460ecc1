// Package graceperiod computes how many seconds a pod or a container has to terminate,
// and explains the result. The rules are those of the kubelet and of the API server,
// as pure functions.
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
//		fmt.Println(graceperiod.ExplainPod(pod, grace, ptr.To(int64(10)))) // a sentence with every rule
//	}
//
// # Which function
//
//   - To know how long a pod has, before anybody ends it: [ForPod] with 0 and nil, and
//     [ForContainer] for each container, init containers that are sidecars included. A
//     manifest without spec.terminationGracePeriodSeconds first gets [DefaultSeconds],
//     as at the API server; otherwise the results are the minimums, 1 s and 2 s.
//   - To delete a pod, as an API server: [BeforeDelete] is the whole delete and
//     [ForDelete] only its grace period. [PodDeleteStrategy] fits into a strategy of
//     k8s.io/apiserver. [DeleteSeconds] is for pods of other types than *v1.Pod.
//   - To remove a pod from a node: [ForSoftEviction] and [ForNodeShutdown] give the
//     override to send; a hard eviction sends [ImmediateEvictionSeconds].
//   - To terminate a pod, as a node agent: [ForPod] takes that override.
//     [ForContainer] gives the grace period of a single container. [Remaining] is
//     what a preStop hook leaves for the stop, [KillTimeout] how long to wait for
//     the whole kill, and [LeftOfDeletion] what an agent that restarted has left.
//
// For each function For... there is a function Explain... with the same parameters.
// It returns an [Explanation], which names every field that was read, and
// prints as a sentence. It does not say where its arguments come from: an override
// is only a number to it.
//
// All numbers are seconds, as in k8s.io/api. A pod, a container and options may be
// nil, and so may their fields; each function says what it returns then.
//
// # Concurrency properties
//
// All functions may be called concurrently: they have no state, no clock and no
// goroutine. Only [BeforeDelete] and [PodDeleteStrategy] write to their arguments (the
// pod and the options), because that is the API server's contract. The For
// functions allocate nothing; the Explain functions do.
//
// # Failure modes
//
// Every input has a result: nil, 0, negative numbers and the extremes of int64
// neither panic nor overflow. [ForPod], [Remaining] and [LeftOfDeletion] never go
// below a minimum. [ForContainer] and the overrides return the value of a field
// unchanged, because the kubelet applies the minimum only where it uses the value.
// Durations saturate at the 292 years of a time.Duration. Only [BeforeDelete]
// returns an error, of the API server's kinds.
//
// kubegrace differs from the kubelet in two cases: it never lengthens a grace period
// that was already given ([ForPod]), and a negative eviction maximum leaves a pod its
// own grace period ([ForSoftEviction]).
//
// # Testing
//
// There is nothing to fake. Times are arguments: pass a fixed one, or the time.Now of
// a testing/synctest bubble.
//
// # Stability
//
// Stable: from v0.1.0 on what is exported changes in a minor release only, and the changelog
// says how.
package graceperiod
