// Package plan computes the times of a node shutdown: the delay to request from the
// host, when each bucket of pods starts and ends, and the grace period of each pod. The
// manager of package shutdown drains a node by it. Without the manager, a program can
// show what a shutdown will do before it happens, or check a configuration.
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
//		if err := config.Validate(true); err != nil {
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
// [Config.Schedule] turns a [Config] into a [Schedule]: buckets, each of which is a range
// of pod priorities with its seconds (KEP-2712). These seconds are for the pods alone.
// The other steps of a drain have time of their own. [NewBudget] adds all of this up, with
// the 2 s that a container's stop has at least, and a margin before the host shuts down. The
// total is the delay to request from the host. If the host waits for less, [Budget.Fit]
// shortens the parts. This is a drain of 20 s for lower pods (L) and 10 s for critical ones
// (C) within three limits; each letter is a second ([Budget.Fit] has the example):
//
//	60 s hhhhhhhhhhpprLLLLLLLLLLLLLLLLLLLLuusrCCCCCCCCCCuusff   all that is asked for
//	36 s prLLLLLLLLLLLLLLLLLLLLusCCCCCCCCCCus                   the pods keep their time
//	15 s LLLLLLLLLLCCCCC                                        each bucket has its part
//
// A bucket begins when the one before it is done, and has an end. Its pods may take until
// then, so they also have what was left before. A longer limit moves no end to an earlier
// time ([Budget.Window]).
//
// [New] computes a [Plan] for pods, on the assumption that each pod uses all of its time.
//
// # Concurrency properties
//
// All functions are pure: they keep nothing, change none of their arguments and may be
// called concurrently. They read no clock; times and durations are arguments.
//
// # Failure modes
//
// Every input has a result, the extremes of int64 included: negative durations count as
// 0 or as "none" (see [Options]), sums saturate at the longest duration (292 years), and
// nil pods are left out. Only the Validate methods of [Config] return an error.
//
// # Testing
//
// A test needs no clock, no machine and no fake: it calls [New] with some pods and a
// limit, and compares their grace periods.
//
// # Stability
//
// Stable: from v0.1.0 on what is exported changes in a minor release only, and the changelog
// says how.
package plan
