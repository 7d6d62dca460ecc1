// Package plan computes the times of a node shutdown: the delay to request from the host, when each
// bucket of pods starts and ends, and the grace period of each pod. Package shutdown drains a node by it.
// Other programs can use it to check a configuration, or to show what a shutdown will do.
//
//	package main
//
//	import (
//		"fmt"
//		"log"
//		"time"
//
//		v1 "k8s.io/api/core/v1"
//		metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
//
//		"github.com/kubegrace/kubegrace/shutdown/plan"
//	)
//
//	func main() {
//		config := plan.Config{
//			ShutdownGracePeriod:             metav1.Duration{Duration: 30 * time.Second},
//			ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: 10 * time.Second},
//		}
//		if err := config.Validate(true, true); err != nil { // both feature gates are on
//			log.Fatal(err)
//		}
//		grace := int64(60)
//		web := &v1.Pod{Spec: v1.PodSpec{TerminationGracePeriodSeconds: &grace}}
//		p := plan.New(config.Schedule(true), []*v1.Pod{web}, plan.Options{Limit: 30 * time.Second})
//		fmt.Println(p.Buckets[0].Pods[0].GrantedSeconds) // 20
//		fmt.Println(p.Warnings)                          // [bucket 0 is too short for 1 of its 1 pods: ...]
//	}
//
// # The arithmetic
//
// [Config.Schedule] turns a [Config] into a [Schedule]: buckets, each a range of pod priorities with its
// seconds (KEP-2712). These seconds are for the pods alone. [NewBudget] adds the time of the other steps of a
// drain, 2 s for the stop of containers whose grace period is used up, and a margin. The total is the delay
// to request from the host. If the host grants less, [Budget.Fit] shortens the parts.
//
// This is a drain with 20 s for lower pods (L) and 10 s for critical pods (C) under three limits; each letter
// is a second (see the example of Budget.Fit):
//
//	60 s hhhhhhhhhhpprLLLLLLLLLLLLLLLLLLLLuusrCCCCCCCCCCuusff   the full request
//	36 s prLLLLLLLLLLLLLLLLLLLLusCCCCCCCCCCus                   the pods keep their time
//	15 s LLLLLLLLLLCCCCC                                        each bucket gets its share
//
// A bucket starts when the previous one is done. Its pods have until the end of the bucket, including time
// that earlier buckets did not use. A longer limit never makes a bucket end earlier ([Budget.Window]).
//
// [New] computes a [Plan] for pods that each use all of their time.
//
// # Failures
//
// No input fails: negative durations count as 0 or as "none" (see [Options]), sums saturate at the longest
// duration (292 years), and nil pods are left out. Only the Validate methods of [Config] return errors. A
// panic of Options.PriorityOf reaches the caller.
//
// # Concurrency
//
// All functions are pure and may be called concurrently. They read no clock.
//
// # Testing
//
// Call [New] with pods and a limit, and compare the grace periods.
//
// # Stability
//
// v0: minor releases may change exported names; the changelog says how.
package plan
