package graceperiod_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// The program in the package documentation.
func Example() {
	pod := &v1.Pod{Spec: v1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To(int64(30)),
		Containers:                    []v1.Container{{Name: "web"}},
	}}
	web := &pod.Spec.Containers[0]

	grace := graceperiod.ForContainer(pod, web, graceperiod.ReasonUnknown)
	fmt.Println(grace)
	fmt.Println(graceperiod.Remaining(grace, 12*time.Second)) // after a preStop hook of 12 s
	fmt.Println(graceperiod.ForPod(pod, grace, ptr.To(int64(10))))
	fmt.Println(graceperiod.ExplainPod(pod, grace, ptr.To(int64(10))))
	// Output:
	// 30
	// 18
	// 10 true
	// The grace period is 10 s because the pod already has 30 s, metadata.deletionGracePeriodSeconds is not set, and the override is shorter with 10.
}

// web returns a running pod with a grace period of 30 s and a liveness probe with one of 10 s.
func web() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 1},
		Spec: v1.PodSpec{
			NodeName:                      "node-1",
			TerminationGracePeriodSeconds: ptr.To(int64(30)),
			Containers: []v1.Container{{
				Name:          "nginx",
				LivenessProbe: &v1.Probe{TerminationGracePeriodSeconds: ptr.To(int64(10))},
			}},
		},
		Status: v1.PodStatus{Phase: v1.PodRunning},
	}
}

// Usually the pod's 30 s apply, and after a failed liveness probe the probe's 10 s. Once the pod is deleted, the grace
// period of the deletion always applies.
func ExampleForContainer() {
	pod := web()
	nginx := &pod.Spec.Containers[0]
	fmt.Println(graceperiod.ForContainer(pod, nginx, graceperiod.ReasonUnknown))
	fmt.Println(graceperiod.ForContainer(pod, nginx, graceperiod.ReasonLivenessProbe))

	pod.DeletionGracePeriodSeconds = ptr.To(int64(5)) // the pod is deleted
	fmt.Println(graceperiod.ForContainer(pod, nginx, graceperiod.ReasonLivenessProbe))
	// Output:
	// 30
	// 10
	// 5
}

// After a failed liveness probe the probe's own grace period applies. The sentence names each field that
// was read.
func ExampleExplainContainer() {
	pod := web()
	why := graceperiod.ExplainContainer(pod, &pod.Spec.Containers[0], graceperiod.ReasonLivenessProbe)
	fmt.Println(strings.ReplaceAll(why.String(), " and ", "\nand "))
	// Output:
	// The grace period is 10 s because metadata.deletionGracePeriodSeconds is not set
	// and spec.containers[0].livenessProbe.terminationGracePeriodSeconds is 10.
}

// A pod has its own 30 s at first. A hard eviction then shortens them to 1 s.
func ExampleForPod() {
	pod := web()
	first, _ := graceperiod.ForPod(pod, 0, nil) // no grace period so far, and no override
	evicted, shortened := graceperiod.ForPod(pod, first, ptr.To(graceperiod.ImmediateEvictionSeconds))
	fmt.Println(first, evicted, shortened)
	// Output: 30 1 true
}

// A pod has no current grace period (0), and an eviction requests 12 s.
func ExampleExplainPod() {
	fmt.Println(graceperiod.ExplainPod(web(), 0, ptr.To(int64(12))))
	// Output:
	// The grace period is 12 s because metadata.deletionGracePeriodSeconds is not set and the override is 12.
}

// The first delete gives a pod its own 30 s, or what is requested. A negative request counts as 1 s. A pod without a
// node is removed at once.
func ExampleForDelete() {
	pod := web()
	fmt.Println(graceperiod.ForDelete(pod, &metav1.DeleteOptions{}))
	fmt.Println(graceperiod.ForDelete(pod, metav1.NewDeleteOptions(90)))
	fmt.Println(graceperiod.ForDelete(pod, metav1.NewDeleteOptions(-1)))

	pod.Spec.NodeName = "" // nothing runs yet
	fmt.Println(graceperiod.ForDelete(pod, metav1.NewDeleteOptions(90)))
	// Output:
	// 30 true
	// 90 true
	// 1 true
	// 0 true
}

// A pod is deleted without a request, so that it has its own 30 s, and then with a request for 90 s. A pod that is not
// scheduled has 0 s.
func ExampleDeleteSeconds() {
	spec, requested := ptr.To(int64(30)), ptr.To(int64(90))
	scheduled, terminated := true, false
	fmt.Println(graceperiod.DeleteSeconds(spec, nil, scheduled, terminated))
	fmt.Println(graceperiod.DeleteSeconds(spec, requested, scheduled, terminated))
	fmt.Println(graceperiod.DeleteSeconds(spec, requested, false, terminated))
	// Output:
	// 30 true
	// 90 true
	// 0 true
}

// The strategy writes the pod's own grace period into the options, as the API server does.
func ExamplePodDeleteStrategy() {
	var strategy graceperiod.PodDeleteStrategy
	options := &metav1.DeleteOptions{}
	graceful := strategy.CheckGracefulDelete(context.Background(), web(), options)
	fmt.Println(graceful, *options.GracePeriodSeconds)
	// Output: true 30
}

// A pod that has finished is removed at once, whatever is requested.
func ExampleExplainDelete() {
	pod := web()
	pod.Status.Phase = v1.PodSucceeded
	fmt.Println(graceperiod.ExplainDelete(pod, metav1.NewDeleteOptions(90)))
	// Output:
	// The grace period is 0 s because options.gracePeriodSeconds is 90 and status.phase says that the pod has finished.
}

// A pod is deleted five times. Each line of the output has the three results (graceful, pending and the error), the end
// of the grace period, its seconds, and the pod's generation.
func ExampleBeforeDelete() {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	pod := web()
	deleteAndShow := func(options *metav1.DeleteOptions, now time.Time) {
		graceful, pending, err := graceperiod.BeforeDelete(pod, options, now)
		fmt.Println(graceful, pending, err, pod.DeletionTimestamp.Format(time.TimeOnly), *pod.DeletionGracePeriodSeconds, pod.Generation)
	}
	deleteAndShow(&metav1.DeleteOptions{}, now)                        // kubectl delete
	deleteAndShow(metav1.NewDeleteOptions(60), now.Add(time.Second))   // a longer grace period changes nothing
	deleteAndShow(metav1.NewDeleteOptions(10), now.Add(2*time.Second)) // a shorter one does
	deleteAndShow(metav1.NewDeleteOptions(0), now.Add(3*time.Second))  // kubectl delete --force
	deleteAndShow(metav1.NewDeleteOptions(0), now.Add(4*time.Second))  // removes the object
	// Output:
	// true false <nil> 12:00:30 30 2
	// false true <nil> 12:00:30 30 2
	// true false <nil> 12:00:10 10 2
	// true false <nil> 12:00:03 0 2
	// false false <nil> 12:00:03 0 2
}

// The pod has 30 s. A maximum of 20 s shortens them; one of 60 s or a negative one does not.
func ExampleForSoftEviction() {
	pod := web()
	fmt.Println(graceperiod.ForSoftEviction(pod, 20), graceperiod.ForSoftEviction(pod, 60), graceperiod.ForSoftEviction(pod, -1))
	// Output: 20 30 30
}

// A negative maximum is no limit.
func ExampleExplainSoftEviction() {
	fmt.Println(graceperiod.ExplainSoftEviction(web(), -1))
	// Output:
	// The grace period is 30 s because the eviction maximum of -1 is no limit and spec.terminationGracePeriodSeconds is 30.
}

// The pod has 30 s. A bucket with 20 s left shortens them; one with 60 s does not.
func ExampleForNodeShutdown() {
	pod := web()
	fmt.Println(graceperiod.ForNodeShutdown(pod, 20), graceperiod.ForNodeShutdown(pod, 60))
	// Output: 20 30
}

// The pod's 30 s do not fit into the 20 s that its bucket has left.
func ExampleExplainNodeShutdown() {
	fmt.Println(graceperiod.ExplainNodeShutdown(web(), 20))
	// Output:
	// The grace period is 20 s because the bucket has 20 s left and spec.terminationGracePeriodSeconds (30) is not shorter.
}

// The timeout is one and a half times the grace period, and at least 10 s.
func ExampleKillTimeout() {
	fmt.Println(graceperiod.KillTimeout(30), graceperiod.KillTimeout(1))
	// Output: 45s 10s
}

// A preStop hook of 12.5 s leaves 18 s of 30 s, because only whole seconds are subtracted. A hook that takes longer
// than the grace period leaves the minimum of 2 s.
func ExampleRemaining() {
	grace := int64(30)
	fmt.Println(graceperiod.Remaining(grace, 12500*time.Millisecond), graceperiod.Remaining(grace, time.Minute))
	// Output: 18 2
}

// 20 s after the deletion of a pod with 30 s, 10 s are left. After the 30 s the minimum of 1 s is left.
func ExampleLeftOfDeletion() {
	pod, now := web(), time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	if _, _, err := graceperiod.BeforeDelete(pod, &metav1.DeleteOptions{}, now); err != nil {
		panic(err)
	}
	fmt.Println(graceperiod.LeftOfDeletion(pod, now.Add(20*time.Second)), graceperiod.LeftOfDeletion(pod, now.Add(time.Hour)))
	// Output: 10 1
}

// 90 seconds as a time.Duration.
func ExampleDuration() {
	fmt.Println(graceperiod.Duration(90))
	// Output: 1m30s
}
