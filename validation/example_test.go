package validation_test

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/validation"
)

// The program in the package documentation.
func Example() {
	grace := int64(10)
	spec := &v1.PodSpec{
		TerminationGracePeriodSeconds: &grace,
		Containers: []v1.Container{{Name: "web", Lifecycle: &v1.Lifecycle{
			PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 15}},
		}}},
	}
	opts := validation.Options{} // every feature is on
	for _, err := range validation.ValidatePodTermination(spec, opts, field.NewPath("spec")) {
		fmt.Println(err)
	}
	// Output:
	// spec.containers[0].lifecycle.preStop.sleep: Invalid value: 15: must be non-negative and less than terminationGracePeriodSeconds (10)
}

// web returns a pod with a preStop sleep and a stop signal.
func web(graceSeconds, sleepSeconds int64) *v1.PodSpec {
	return &v1.PodSpec{
		TerminationGracePeriodSeconds: &graceSeconds,
		Containers: []v1.Container{{
			Name: "web",
			Lifecycle: &v1.Lifecycle{
				PreStop:    &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: sleepSeconds}},
				StopSignal: ptr.To(v1.SIGQUIT),
			},
		}},
	}
}

// A hook that sleeps for 15 s does not fit into a grace period of 10 s, and a stop signal needs a spec with an OS.
func ExampleValidatePodTermination() {
	for _, err := range validation.ValidatePodTermination(web(10, 15), validation.Options{}, field.NewPath("spec")) {
		fmt.Println(err)
	}
	// Output:
	// spec.containers[0].lifecycle.preStop.sleep: Invalid value: 15: must be non-negative and less than terminationGracePeriodSeconds (10)
	// spec.containers[0].lifecycle.stopSignal: Forbidden: may not be set for containers with empty `spec.os.name`
}

// If zero sleeps are off, the template of a stored Deployment with one stays valid, and a new one is
// rejected.
func ExampleOptions_ForUpdate() {
	opts := validation.Options{NoZeroSleep: true}
	stored, changed := web(10, 0), web(20, 0)
	changed.OS = &v1.PodOS{Name: v1.Linux}
	fmt.Println(validation.ValidatePodTermination(changed, opts.ForUpdate(stored), field.NewPath("template", "spec")).ToAggregate())
	fmt.Println(validation.ValidatePodTermination(changed, opts, field.NewPath("template", "spec")).ToAggregate())
	// Output:
	// <nil>
	// template.spec.containers[0].lifecycle.preStop.sleep: Invalid value: 0: must be greater than 0 and less than terminationGracePeriodSeconds (20). Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep.
}

// The field of a feature that is off is removed, unless the stored pod uses it.
func ExampleDropDisabledFields() {
	opts := validation.Options{NoSleepAction: true}
	spec := web(10, 5)
	validation.DropDisabledFields(spec, nil, opts)
	fmt.Println(spec.Containers[0].Lifecycle.PreStop, *spec.Containers[0].Lifecycle.StopSignal)

	spec = web(10, 5)
	validation.DropDisabledFields(spec, web(10, 3), opts) // the stored pod has a sleep
	fmt.Println(spec.Containers[0].Lifecycle.PreStop.Sleep.Seconds)
	// Output:
	// nil SIGQUIT
	// 5
}

// The API server accepts a preStop sleep that is as long as the grace period. The warning says what it means: the sleep
// leaves the container no time, so that it has only the kubelet's minimum of 2 s to stop.
func ExampleWarnPodTermination() {
	for _, warning := range validation.WarnPodTermination(web(10, 10), field.NewPath("spec")) {
		fmt.Println(warning)
	}
	// Output:
	// spec.containers[0].lifecycle.preStop.sleep: 10 is not less than terminationGracePeriodSeconds (10): the container has only 2 s to stop
}

// A configuration has three mistakes: both kinds of schedule, a negative grace period, and the same priority twice.
func ExampleValidateNodeShutdown() {
	cfg := plan.Config{
		ShutdownGracePeriod: metav1.Duration{Duration: time.Minute},
		ShutdownGracePeriodByPodPriority: []plan.PodPriorityGracePeriod{
			{Priority: 0, ShutdownGracePeriodSeconds: 30},
			{Priority: 100000, ShutdownGracePeriodSeconds: -10},
			{Priority: 0, ShutdownGracePeriodSeconds: 20},
		},
	}
	fmt.Println(validation.ValidateNodeShutdown(cfg, validation.Options{}))
	// Output:
	// invalid configuration: Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time
	// invalid configuration: shutdownGracePeriodByPodPriority[1].shutdownGracePeriodSeconds -10 must not be negative
	// invalid configuration: shutdownGracePeriodByPodPriority[2].priority 0 duplicates shutdownGracePeriodByPodPriority[0]
}

// The host grants 45 s, which is less than the schedule of one minute. A static pod has a priority class, but no
// priority.
func ExampleWarnNodeShutdown() {
	cfg := plan.Config{
		ShutdownGracePeriod:             metav1.Duration{Duration: time.Minute},
		ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: 20 * time.Second},
	}
	etcd := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "etcd-node1"},
		Spec:       v1.PodSpec{PriorityClassName: "system-node-critical", TerminationGracePeriodSeconds: ptr.To(int64(30))},
	}
	opts := plan.Options{Limit: 45 * time.Second, Steps: plan.Steps{Publish: true, Readiness: true, Statuses: true}}
	for _, warning := range validation.WarnNodeShutdown(cfg, []*v1.Pod{etcd}, opts) {
		fmt.Println(warning)
	}
	// Output:
	// the schedule takes 1m0s but is cut to 45s, only in buckets without pods
	// publishing, readiness, unmounts and final statuses get 0s of the requested 6s
	// pod kube-system/etcd-node1 has priority class "system-node-critical" but no priority: it counts as 2000001000 here and as 0 for a kubelet, which kills it first
}
