package shutdown_test

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/shutdown"
)

// What a shutdown of this node would do, before it happens.
func ExampleNewPlan() {
	named := func(name string, priority int32, grace int64) *v1.Pod {
		return &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec:       v1.PodSpec{Priority: &priority, TerminationGracePeriodSeconds: &grace},
		}
	}
	schedule := shutdown.Schedule{{Priority: 0, Seconds: 45}, {Priority: 2_000_000_000, Seconds: 10}}
	plan := shutdown.NewPlan(schedule, []*v1.Pod{
		named("web", 0, 30), named("db", 0, 120), named("dns", 2_000_000_000, 5),
	}, shutdown.PlanOptions{Limit: 50 * time.Second})

	for _, bucket := range plan.Buckets {
		fmt.Printf("bucket %d, from %v to %v\n", bucket.Priority, bucket.Start, bucket.End)
		for _, pod := range bucket.Pods {
			fmt.Printf("  %s: %d of %d s\n", pod.Pod.Name, pod.GrantedSeconds, pod.WantedSeconds)
		}
	}
	for _, warning := range plan.Warnings {
		fmt.Println("warning:", warning)
	}
	// Output:
	// bucket 0, from 0s to 40s
	//   web: 30 of 30 s
	//   db: 40 of 120 s
	// bucket 2000000000, from 40s to 50s
	//   dns: 5 of 5 s
	// warning: the schedule takes 55s but is cut to 50s
	// warning: bucket 0 is cut from 45s to 40s
	// warning: bucket 0 is too short for 1 of its 2 pods: shop/db asks for 120s and gets 40s
}

// A static pod names a class, and no admission has looked its value up.
func ExamplePlanOptions_Priority() {
	opts := shutdown.PlanOptions{PriorityOf: func(className string) (int32, bool) { return 1000, className == "gold" }}
	for _, class := range []string{"system-node-critical", "gold", "lead"} {
		pod := &v1.Pod{Spec: v1.PodSpec{PriorityClassName: class}}
		fmt.Println(class, opts.Priority(pod))
	}
	// Output:
	// system-node-critical 2000001000
	// gold 1000
	// lead 0
}
