package plan_test

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// The program of the package documentation.
func Example() {
	config := plan.Config{
		ShutdownGracePeriod:             metav1.Duration{Duration: 30 * time.Second},
		ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: 10 * time.Second},
	}
	if err := config.Validate(true, true); err != nil { // both feature gates are on
		fmt.Println(err)
		return
	}
	grace := int64(60)
	web := &v1.Pod{Spec: v1.PodSpec{TerminationGracePeriodSeconds: &grace}}
	p := plan.New(config.Schedule(true), []*v1.Pod{web}, plan.Options{Limit: 30 * time.Second})
	fmt.Println(p.Buckets[0].Pods[0].GrantedSeconds)
	fmt.Println(p.Warnings)
	// Output:
	// 20
	// [bucket 0 is too short for 1 of its 1 pods: / asks for 60s and gets 20s]
}

// The fields are those of a KubeletConfiguration file. The argument says that the feature gate GracefulNodeShutdownBasedOnPodPriority is
// on. The file has no shutdownGracePeriodByPodPriority, so the two fields become two buckets.
func ExampleConfig_Schedule() {
	var cfg plan.Config
	if err := yaml.Unmarshal([]byte(`
shutdownGracePeriod: 30s
shutdownGracePeriodCriticalPods: 10s
`), &cfg); err != nil {
		fmt.Println(err)
	}
	for _, bucket := range cfg.Schedule(true) {
		fmt.Printf("pods of priority %d and above: %d s\n", bucket.Priority, bucket.Seconds)
	}
	// Output:
	// pods of priority 0 and above: 20 s
	// pods of priority 2000000000 and above: 10 s
}

// Critical pods cannot have more time than all pods together. Both feature gates are on.
func ExampleConfig_Validate() {
	cfg := plan.Config{
		ShutdownGracePeriod:             metav1.Duration{Duration: time.Second},
		ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: 2 * time.Second},
	}
	fmt.Println(cfg.Validate(true, true))
	// Output:
	// invalid configuration: shutdownGracePeriodCriticalPods {2s} must be <= shutdownGracePeriod {1s}
}

// A pod belongs to the last bucket whose priority is not above its own, or else to the first.
func ExampleSchedule_Index() {
	s := plan.Schedule{{Priority: 0, Seconds: 20}, {Priority: 1000, Seconds: 10}}
	fmt.Println(s.Index(-5), s.Index(0), s.Index(999), s.Index(1000), s.Index(2_000_000_000))
	// Output:
	// 0 0 0 1 1
}

// A drain with 20 s for lower pods and 10 s for critical ones, a hold and four other steps requests 52.5 s. It is
// fitted to three limits. Each letter is a second:
//
//	h hold, p publish, r readiness marks, L lower pods, C critical pods, u unmounts, s statuses, f floor
//
// 60 s cover everything. 36 s cover the schedule: both buckets keep their time, and the other steps share the rest.
// 15 s are less than the schedule: both buckets get half of their time.
func ExampleBudget_Fit() {
	schedule := plan.Schedule{{Priority: 0, Seconds: 20}, {Priority: 2_000_000_000, Seconds: 10}}
	requested := plan.NewBudget(schedule, plan.Options{Steps: plan.Steps{Hold: true, Publish: true, Readiness: true, Unmount: true, Statuses: true}})
	var occupied []bool // nil: it is not known which buckets have pods
	for _, limit := range []time.Duration{60 * time.Second, 36 * time.Second, 15 * time.Second} {
		fmt.Printf("%v s %s\n", limit.Seconds(), timeline(requested.Fit(limit, occupied)))
	}
	// Output:
	// 60 s hhhhhhhhhhpprLLLLLLLLLLLLLLLLLLLLuusrCCCCCCCCCCuusff
	// 36 s prLLLLLLLLLLLLLLLLLLLLusCCCCCCCCCCus
	// 15 s LLLLLLLLLLCCCCC
}

// timeline returns a letter for each second of a budget: the part in the middle of that second.
func timeline(b plan.Budget) string {
	type part struct {
		letter byte
		time   time.Duration
	}
	low, high := b.Buckets[0], b.Buckets[1]
	var line []byte
	var end time.Duration
	for _, p := range []part{
		{'h', b.Hold},
		{'p', b.Publish},
		{'r', low.Readiness},
		{'L', low.Pods},
		{'u', low.Unmount},
		{'s', low.Statuses},
		{'r', high.Readiness},
		{'C', high.Pods},
		{'u', high.Unmount},
		{'s', high.Statuses},
		{'f', b.Floor},
	} {
		end += p.time
		for time.Duration(len(line))*time.Second+time.Second/2 < end {
			line = append(line, p.letter)
		}
	}
	return string(line)
}

// The budget has time for the pods and for the other steps: publishing (2 s), and for each bucket readiness (1 s), unmounts
// (5 s) and final statuses (1 s). With 2.5 s at the end this is 48.5 s.
//
//   - If the host grants 38.1 s, the pods keep their 30 s, and the other steps get half of their 16 s.
//   - If it grants 15 s, the other steps get nothing, and the pods' times are halved.
//
// At least the last 0.1 s is kept for the release of the lock.
func ExampleNewBudget() {
	schedule := plan.Schedule{{Priority: 0, Seconds: 20}, {Priority: 2_000_000_000, Seconds: 10}}
	opts := plan.Options{
		Steps:          plan.Steps{Publish: true, Readiness: true, Unmount: true, Statuses: true},
		UnmountTimeout: 5 * time.Second, // volumes that take long to unmount
	}
	wanted := plan.NewBudget(schedule, opts)
	show := func(name string, b plan.Budget) {
		fmt.Printf("%s: pods %v, other steps %v, buckets end at %v and %v, all waits at %v\n",
			name, b.Pods(), b.Beside(), b.Buckets[0].End, b.Buckets[1].End, b.WaitEnd)
	}
	fmt.Println("request", wanted.Total())
	show("48.5 s granted", wanted)
	var occupied []bool // nil: it is not known which buckets have pods
	show("38.1 s granted", wanted.Fit(38100*time.Millisecond, occupied))
	show("15 s granted", wanted.Fit(15*time.Second, occupied))
	// Output:
	// request 48.5s
	// 48.5 s granted: pods 30s, other steps 16s, buckets end at 29s and 46s, all waits at 48s
	// 38.1 s granted: pods 30s, other steps 8s, buckets end at 24.5s and 38s, all waits at 38s
	// 15 s granted: pods 15s, other steps 0s, buckets end at 10s and 15s, all waits at 14.9s
}

// The pods of a bucket that starts early have more time, until the end of the bucket.
func ExampleBudget_Window() {
	budget := plan.NewBudget(plan.Schedule{{Priority: 0, Seconds: 20}, {Priority: 2_000_000_000, Seconds: 10}}, plan.Options{})
	grace := int64(60)
	dns := &v1.Pod{Spec: v1.PodSpec{TerminationGracePeriodSeconds: &grace}}
	for _, start := range []time.Duration{5 * time.Second, 20 * time.Second} {
		window := budget.Window(1, start, plan.Options{})
		fmt.Println("killed at", start, "with", window.Seconds(dns, start), "s, waited for until", window.KillsEnd)
	}
	// Output:
	// killed at 5s with 25 s, waited for until 30s
	// killed at 20s with 10 s, waited for until 30s
}

// Like the kubelet, Validate rejects shutdownGracePeriod if the feature gate GracefulNodeShutdown is off.
func ExampleConfig_Validate_gateOff() {
	cfg := plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 30 * time.Second}}
	const graceful, byPriority = false, true
	fmt.Println(cfg.Validate(graceful, byPriority))
	// Output:
	// invalid configuration: specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown
}

// The plan shows what a shutdown of this node would do to its pods.
func ExampleNew() {
	named := func(name string, priority int32, grace int64) *v1.Pod {
		return &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec:       v1.PodSpec{Priority: &priority, TerminationGracePeriodSeconds: &grace},
		}
	}
	schedule := plan.Schedule{{Priority: 0, Seconds: 45}, {Priority: 2_000_000_000, Seconds: 15}}
	p := plan.New(schedule, []*v1.Pod{
		named("web", 0, 30), named("db", 0, 120), named("dns", 2_000_000_000, 5),
	}, plan.Options{Limit: 40 * time.Second})

	for _, bucket := range p.Buckets {
		fmt.Printf("bucket %d, from %v to %v\n", bucket.Priority, bucket.Start, bucket.End)
		for _, pod := range bucket.Pods {
			fmt.Printf("  %s: %d of %d s\n", pod.Pod.Name, pod.GrantedSeconds, pod.WantedSeconds)
		}
	}
	for _, warning := range p.Warnings {
		fmt.Println("warning:", warning)
	}
	// Output:
	// bucket 0, from 0s to 30s
	//   web: 30 of 30 s
	//   db: 30 of 120 s
	// bucket 2000000000, from 30s to 39.9s
	//   dns: 5 of 5 s
	// warning: the schedule takes 1m0s but is cut to 40s
	// warning: bucket 0 is cut from 45s to 30s
	// warning: bucket 0 is too short for 1 of its 2 pods: shop/db asks for 120s and gets 30s
	// warning: bucket 2000000000 is cut from 15s to 10s
}

// Static pods may have the name of a priority class without a priority.
func ExampleOptions_Priority() {
	opts := plan.Options{PriorityOf: func(className string) (int32, bool) { return 1000, className == "gold" }}
	for _, class := range []string{"system-node-critical", "gold", "lead"} {
		pod := &v1.Pod{Spec: v1.PodSpec{PriorityClassName: class}}
		fmt.Println(class, opts.Priority(pod))
	}
	// Output:
	// system-node-critical 2000001000
	// gold 1000
	// lead 0
}

// A priority may occur only once. Both feature gates are on.
func ExampleConfig_Validate_duplicatePriority() {
	cfg := plan.Config{ShutdownGracePeriodByPodPriority: []plan.PodPriorityGracePeriod{
		{Priority: 0, ShutdownGracePeriodSeconds: 20}, {Priority: 0, ShutdownGracePeriodSeconds: 10},
	}}
	fmt.Println(cfg.Validate(true, true))
	// Output: invalid configuration: shutdownGracePeriodByPodPriority[1].priority 0 duplicates shutdownGracePeriodByPodPriority[0]
}
