// Package plan is the arithmetic of a node shutdown: what to ask the host for, when
// each bucket starts and ends, and what each pod gets. A manager of package shutdown
// drains by it, and a program that shows beforehand what a shutdown will do, or
// that checks a configuration, uses it without the manager.
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
// A [Config] becomes a [Schedule]: buckets of pods by priority, each with its seconds
// (KEP-2712). The pods' time is theirs. What a drain does beside the kills comes on
// top of it: the hold and the publishing of the node's state before the first
// bucket; readiness marks, unmounts and final statuses in each. [NewBudget] adds all
// of that up, with the 2 s of the containers' floor and the margin before the host's
// end: it is what the host is asked for.
//
// A host that waits for less makes something give way: [Budget.Fit] takes from the
// parts beside the pods' time first, and from the highest bucket last. A
// [Timetable] has the result on the clock of one drain; its [Window] is the time of
// one bucket, given when that bucket starts and what earlier ones have left. Unused
// time of pods rolls over to later buckets, up to the ends that were planned; time
// for what is done beside the kills does not.
//
// [New] puts pods to it, as if every one took all the time it has.
//
// # Concurrency properties
//
// All functions are pure: they keep nothing, change none of their arguments and may
// be called from any goroutine. They read no clock; moments and spans are arguments.
//
// # Failure modes
//
// There is a result for every input, the extremes of int64 included: negative spans
// count as none, sums saturate at the longest duration (292 years), nil pods are left
// out. A configuration that the kubelet would refuse is an error of [Config.Validate]
// and of nothing else here.
//
// # Testing
//
// Nothing here needs a clock, a machine or a fake: a test calls [New] with the pods and
// the limit that it is about, and compares what they get. Moments are arguments, so a
// drain can be gone through bucket by bucket, as the example of [Timetable.Window] does.
package plan
