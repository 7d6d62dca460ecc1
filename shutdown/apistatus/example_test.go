//go:build go1.25

package apistatus_test

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// newReporter returns a reporter for a fake cluster with the given objects, and its client. An agent makes its
// client with [apistatus.NewClient].
func newReporter(objects ...runtime.Object) (kubernetes.Interface, *apistatus.Reporter, error) {
	client := fake.NewClientset(objects...)
	reporter, err := apistatus.New(apistatus.Options{Client: client, NodeName: nodeName})
	return client, reporter, err
}

// getPod returns a pod of the cluster.
func getPod(ctx context.Context, client kubernetes.Interface, name string) *v1.Pod {
	pod, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		fmt.Println(err)
	}
	return pod
}

// The manager of an agent reports a shutdown to the API server.
func Example() {
	ctx := context.Background()
	client := fake.NewClientset(nodeOf(ready), running("web")) // an agent calls apistatus.NewClient
	reporter, err := apistatus.New(apistatus.Options{Client: client, NodeName: nodeName})
	if err != nil {
		fmt.Println(err)
		return
	}
	manager, err := shutdown.NewManager(shutdown.Options{
		Config:   plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 20 * time.Second}},
		ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return []*v1.Pod{running("web")} }, nil),
		Killer: shutdown.PodKillerFunc(func(_ context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
			status := pod.Status.DeepCopy()
			req.SetStatus(status)
			return shutdown.KillResult{Outcome: "Graceful", Status: status}, nil
		}),
		Reporter: reporter,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := manager.TerminateAll(ctx); err != nil {
		fmt.Println(err)
	}
	pod := getPod(ctx, client, "web")
	fmt.Println(pod.Status.Phase, pod.Status.Reason)
	// Output: Failed Terminated
}

// NewClient copies the config and sets the rate limit of the copy.
func ExampleNewClient() {
	config := &rest.Config{Host: "https://10.0.0.1:6443", QPS: 5}
	client, err := apistatus.NewClient(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(client.CoreV1().RESTClient().GetRateLimiter().QPS(), config.QPS)
	// Output: 1000 5
}

// The error joins all faults of the options.
func ExampleNew() {
	_, err := apistatus.New(apistatus.Options{})
	fmt.Println(err)
	// Output:
	// Options.Client is required
	// Options.NodeName is required
}

// A node shuts down, and the shutdown is cancelled. Each state becomes two conditions of the node.
func ExampleReporter_PublishNode() {
	ctx := context.Background()
	client, reporter, err := newReporter(nodeOf(ready))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, state := range []shutdown.NodeState{{ShuttingDown: true, Kind: source.KindReboot}, {}} {
		fmt.Println(reporter.PublishNode(ctx, state))
		node, err := client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, c := range node.Status.Conditions {
			fmt.Println(c.Type, c.Status, c.Reason, c.Message)
		}
	}
	// Output:
	// <nil>
	// Ready False KubeletNotReady node is shutting down
	// GracefulNodeShutdownInProgress True NodeShutdown Kubelet received a shutdown signal and is terminating pods: reboot
	// <nil>
	// Ready True KubeletReady kubelet is posting ready status
	// GracefulNodeShutdownInProgress False NodeShutdown no node shutdown is in progress
}

// The final status of a pod whose container has no exit code. The reporter adds the one that the kubelet would add.
func ExampleReporter_FlushPod() {
	ctx := context.Background()
	client, reporter, err := newReporter(running("web"))
	if err != nil {
		fmt.Println(err)
		return
	}
	final := running("web") // with the status that the node knows
	final.Status = v1.PodStatus{Phase: v1.PodFailed, Reason: "Terminated"}
	final.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "app", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}
	fmt.Println(reporter.FlushPod(ctx, final))
	pod := getPod(ctx, client, "web")
	fmt.Println(pod.Status.Phase, pod.Status.Reason, pod.Status.PodIP)
	app := pod.Status.ContainerStatuses[0]
	fmt.Println(app.Name, app.State.Terminated.ExitCode, app.State.Terminated.Reason)
	// Output:
	// <nil>
	// Failed Terminated 10.0.0.7
	// app 137 ContainerStatusUnknown
}

// A pod is marked as not ready for a shutdown, and is ready again after its cancellation.
func ExampleReporter_MarkNotReady() {
	ctx := context.Background()
	client, reporter, err := newReporter(running("web"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, call := range []func(context.Context, *v1.Pod) error{reporter.MarkNotReady, reporter.RestoreReadiness} {
		fmt.Println(call(ctx, running("web")))
		pod := getPod(ctx, client, "web")
		fmt.Printf("%s %q\n", pod.Status.Conditions[readyIndex].Status, pod.Status.Conditions[readyIndex].Message)
	}
	// Output:
	// <nil>
	// False "Pod is being terminated by its node."
	// <nil>
	// True ""
}

// An agent that writes its node's status itself gets the conditions from NodeConditions.
func ExampleNodeConditions() {
	ready := v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue}
	for _, c := range apistatus.NodeConditions(shutdown.NodeState{ShuttingDown: true}, ready, time.Now()) {
		fmt.Println(c.Type, c.Status)
	}
	// Output:
	// Ready False
	// GracefulNodeShutdownInProgress True
}
