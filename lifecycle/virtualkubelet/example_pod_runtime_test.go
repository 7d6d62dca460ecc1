//go:build unix

package virtualkubelet_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
)

// jobs is a PodRuntime that only keeps a phase for each pod. A real one calls a job scheduler or another
// cluster in these four methods.
type jobs struct {
	mu   sync.Mutex
	pods map[types.UID]*v1.Pod
}

func (j *jobs) Create(_ context.Context, pod *v1.Pod) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.pods[pod.UID] == nil { // Create may be repeated after a lost answer
		pod.Status.Phase = v1.PodRunning
		j.pods[pod.UID] = pod
	}
	return nil
}

func (j *jobs) Stop(_ context.Context, pod *v1.Pod, graceSeconds int64) error {
	fmt.Printf("stop %s with %d s\n", pod.Name, graceSeconds)
	j.mu.Lock()
	defer j.mu.Unlock()
	if job := j.pods[pod.UID]; job != nil {
		job.Status.Phase = v1.PodSucceeded
	}
	return nil
}

func (j *jobs) Statuses(context.Context) ([]*v1.Pod, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var pods []*v1.Pod
	for _, job := range j.pods {
		pods = append(pods, job.DeepCopy())
	}
	return pods, nil
}

func (j *jobs) Delete(_ context.Context, pod *v1.Pod) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.pods, pod.UID)
	return nil
}

// A pod runs as a job, is stopped with its grace period, and has ended once Statuses says so.
func ExamplePodRuntime() {
	ctx := context.Background()
	provider, err := virtualkubelet.New(virtualkubelet.Options{Pods: &jobs{pods: map[types.UID]*v1.Pod{}}, PollInterval: 20 * time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	statuses := make(chan v1.PodStatus, 10)
	provider.NotifyPods(ctx, func(pod *v1.Pod) { statuses <- pod.Status })
	pod := sleeper("render")
	if err := provider.CreatePod(ctx, pod); err != nil { // virtual-kubelet calls this
		fmt.Println(err)
	}
	fmt.Println(await(statuses, v1.PodRunning).Phase)
	grace := int64(60)
	pod.DeletionGracePeriodSeconds = &grace
	if err := provider.DeletePod(ctx, pod); err != nil { // virtual-kubelet calls this too
		fmt.Println(err)
	}
	fmt.Println(await(statuses, v1.PodSucceeded).Phase)
	if err := provider.Close(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Running
	// stop render with 60 s
	// Succeeded
}
