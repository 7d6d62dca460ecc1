// Outside is a program in another module: a provider with one pod, which a drain ends.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
	"github.com/kubegrace/kubegrace/shutdown"
)

// runtime adds StartContainer to lifecycletest's runtime.
type runtime struct{ *lifecycletest.Runtime }

func (r runtime) StartContainer(_ context.Context, pod *v1.Pod, c *v1.Container) (string, error) {
	id := string(pod.UID) + "/" + c.Name
	r.Start(pod, c.Name, id, lifecycletest.Script{ExitCode: int32(len(c.Name))})
	return id, nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// run creates a pod with two containers, drains it, and prints its outcome and the exit codes of its containers.
func run(ctx context.Context) error {
	provider, err := virtualkubelet.New(virtualkubelet.Options{Runtime: runtime{lifecycletest.NewRuntime()}})
	if err != nil {
		return err
	}
	manager, err := shutdown.NewManager(shutdown.Options{ListPods: provider.Pods, Killer: provider})
	if err != nil {
		return err
	}
	statuses := make(chan v1.PodStatus, 10)
	provider.NotifyPods(ctx, func(pod *v1.Pod) { statuses <- pod.Status })
	err = provider.CreatePod(ctx, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "nginx"}, {Name: "log"}}},
	})
	if err != nil {
		return err
	}
	for status := range statuses {
		if status.Phase == v1.PodRunning {
			break
		}
	}
	report, err := manager.TerminateAll(ctx)
	for _, pod := range report.Pods {
		fmt.Println(pod.Namespace, pod.Name, pod.Outcome)
	}
	err = errors.Join(err, provider.Close(ctx))
	close(statuses)
	for status := range statuses {
		if status.Phase == v1.PodFailed {
			for _, c := range status.ContainerStatuses {
				fmt.Println(c.Name, c.State.Terminated.ExitCode)
			}
		}
	}
	return err
}
