// Fork links what a fork of the kubelet links: the clientset, managed fields, and kubegrace
// beside them. compat.sh builds and runs it in a module that has the requirements of Kubernetes
// v1.32 and replaces its libraries, as such a fork does.
package main

import (
	"context"
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyv1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	_ "github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
	_ "github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown"
	_ "github.com/kubegrace/kubegrace/shutdown/logind"
	_ "github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run uses the clientset, the managed fields and kubegrace once, so that the linker keeps them:
// it applies a node, and kills a pod.
func run(ctx context.Context) error {
	if _, err := kubernetes.NewForConfig(&rest.Config{}); err != nil {
		return err
	}
	node, err := fake.NewClientset().CoreV1().Nodes().Apply(ctx, applyv1.Node("worker").
		WithStatus(applyv1.NodeStatus().WithPhase(v1.NodeRunning)), metav1.ApplyOptions{FieldManager: "kubelet"})
	if err != nil {
		return err
	}
	if len(node.ManagedFields) != 1 {
		return fmt.Errorf("managed fields of the node: %v", node.ManagedFields)
	}
	stop := func(context.Context, string, int64) error { return nil }
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: lifecycle.RuntimeFunc(stop)})
	if err != nil {
		return err
	}
	pod := shutdowntest.Pod("web", 0, 60)
	running := func(context.Context, *v1.Pod) ([]lifecycle.Container, error) {
		return []lifecycle.Container{{Name: "web", ID: "7f3a"}}, nil
	}
	killer, seconds := podkiller.New(terminator, podkiller.Options{Containers: running}), int64(5)
	result, err := killer.KillPod(ctx, pod, shutdown.KillRequest{GracePeriodSeconds: &seconds})
	if err != nil {
		return err
	}
	if result.Outcome != "Graceful" {
		return fmt.Errorf("the pod ended %s", result.Outcome)
	}
	return nil
}
