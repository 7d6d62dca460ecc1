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
	if err := config.Validate(true); err != nil {
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

// The fields are those of a KubeletConfiguration file.
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

func ExampleConfig_Validate() {
	cfg := plan.Config{
		ShutdownGracePeriod:             metav1.Duration{Duration: time.Second},
		ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: 2 * time.Second},
	}
	fmt.Println(cfg.Validate(true))
	// Output:
	// invalid configuration: shutdownGracePeriodCriticalPods {2s} must be <= shutdownGracePeriod {1s}
}

func ExampleSchedule_Index() {
	s := plan.Schedule{{Priority: 0, Seconds: 20}, {Priority: 1000, Seconds: 10}}
	fmt.Println(s.Index(-5), s.Index(0), s.Index(999), s.Index(1000), s.Index(2_000_000_000))
	// Output:
	// 0 0 0 1 1
}

// If the host waits for 30 s only, the pods of the lowest priority lose their time first.
// If it is known what the pods need, only the seconds that none needs are lost.
func ExampleBudget_Fit() {
	schedule := plan.Schedule{{Priority: 0, Seconds: 60}, {Priority: 1000, Seconds: 25}, {Priority: 2_000_000_000, Seconds: 10}}
	wanted := plan.NewBudget(schedule, plan.Options{})
	fmt.Println(wanted.Total(), wanted.Schedule)
	fmt.Println(wanted.Fit(30*time.Second, nil).Schedule)
	fmt.Println(wanted.Fit(30*time.Second, []int64{5, 15, 2}).Schedule)
	// Output:
	// 1m37.5s [{0 60} {1000 25} {2000000000 10}]
	// [{0 0} {1000 20} {2000000000 10}]
	// [{0 5} {1000 15} {2000000000 7}]
}

// The budget has time for the steps besides the kills. If the host waits for less, those
// are shortened before the pods' time.
func ExampleNewBudget() {
	schedule := plan.Schedule{{Priority: 0, Seconds: 20}, {Priority: 2_000_000_000, Seconds: 10}}
	opts := plan.Options{
		Limit: 35 * time.Second,
		Hooks: plan.Hooks{Publish: true, Readiness: true, Unmount: true, Statuses: true},
		// volumes that take long to unmount
		UnmountReserve: 5 * time.Second,
	}
	wanted := plan.NewBudget(schedule, opts)
	fmt.Println("request", opts.Cap(wanted.Total()), "of", wanted.Total())
	for _, b := range []plan.Budget{wanted, wanted.Fit(35*time.Second, nil), wanted.Fit(10*time.Second, nil)} {
		fmt.Println("publish", b.Publish, "buckets", b.Schedule, "overhead", b.Overhead(), "floor", b.Floor, "margin", b.Margin)
	}
	// Output:
	// request 35s of 48.5s
	// publish 2s buckets [{0 20} {2000000000 10}] overhead 16s floor 2s margin 500ms
	// publish 625ms buckets [{0 20} {2000000000 10}] overhead 5s floor 0s margin 500ms
	// publish 0s buckets [{0 0} {2000000000 10}] overhead 0s floor 0s margin 500ms
}

// The longest grace period of the pods of a bucket is what a short limit leaves it.
func ExampleSchedule_Needs() {
	grace := int64(5)
	web := &v1.Pod{Spec: v1.PodSpec{TerminationGracePeriodSeconds: &grace}}
	schedule := plan.Schedule{{Priority: 0, Seconds: 20}, {Priority: 2_000_000_000, Seconds: 10}}
	fmt.Println(schedule.Needs([]*v1.Pod{web}, plan.Options{}))
	// Output:
	// [5 0]
}

// Settings that the kubelet refuses if its feature gate GracefulNodeShutdown is off.
func ExampleConfig_ValidateWithoutGate() {
	cfg := plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 30 * time.Second}}
	fmt.Println(cfg.ValidateWithoutGate(true))
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
	schedule := plan.Schedule{{Priority: 0, Seconds: 45}, {Priority: 2_000_000_000, Seconds: 10}}
	p := plan.New(schedule, []*v1.Pod{
		named("web", 0, 30), named("db", 0, 120), named("dns", 2_000_000_000, 5),
	}, plan.Options{Limit: 50 * time.Second})

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
	// bucket 0, from 0s to 45s
	//   web: 30 of 30 s
	//   db: 45 of 120 s
	// bucket 2000000000, from 45s to 49.5s
	//   dns: 5 of 5 s
	// warning: the schedule takes 55s but is cut to 50s, by seconds that no pod needs
	// warning: bucket 0 is too short for 1 of its 2 pods: shop/db asks for 120s and gets 45s
}

// A pod with the name of a priority class and no priority, as static pods have it.
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
