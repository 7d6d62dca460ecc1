package criruntime_test

import (
	"context"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
)

// The endpoint has the kubelet's form. Dial does not connect yet.
func ExampleDial() {
	_, err := criruntime.Dial(context.Background(), "tcp://127.0.0.1:1234", criruntime.Options{})
	fmt.Println(err)
	// Output: container runtime endpoint "tcp://127.0.0.1:1234" has the scheme "tcp", want unix:///path/to/socket
}

// An agent stops a kubelet's pods, each with its own hook.
func Example() {
	ctx := context.Background()
	endpoint, end := exampleNode(ctx)
	defer end()
	runtime, err := criruntime.Dial(ctx, endpoint, criruntime.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: runtime, Commands: runtime, Exits: runtime})
	if err != nil {
		fmt.Println(err)
		return
	}
	killer := podkiller.New(terminator, podkiller.Options{Status: runtime.PodStatus})
	manager, err := shutdown.NewManager(shutdown.Options{ListPods: runtime.Pods, Killer: killer})
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := manager.TerminateAll(ctx)
	for _, pod := range report.Pods {
		fmt.Println(pod.Namespace, pod.Name, pod.GrantedSeconds, pod.Outcome)
	}
	fmt.Println(err, terminator.Close(ctx), runtime.Close())
	// Output:
	// hook /bin/drain
	// shop web 45 Graceful
	// <nil> <nil> <nil>
}

// The agent adds what no kubelet stores in its runtime, here a priority class.
func ExampleRuntime_Pods() {
	ctx := context.Background()
	endpoint, end := exampleNode(ctx)
	defer end()
	runtime, err := criruntime.Dial(ctx, endpoint, criruntime.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	pods, err := runtime.Pods(ctx)
	for _, pod := range pods {
		if pod.Namespace == "shop" {
			pod.Spec.PriorityClassName = "system-node-critical"
		}
		running, err := runtime.Running(ctx, pod)
		fmt.Println(pod.Name, pod.Spec.PriorityClassName, *pod.Spec.TerminationGracePeriodSeconds, len(running), err)
	}
	fmt.Println(err, runtime.Close())
	// Output:
	// web system-node-critical 45 1 <nil>
	// <nil> <nil>
}

// exampleNode serves a scripted runtime with one pod of a kubelet.
func exampleNode(ctx context.Context) (endpoint string, end func()) {
	cri := newFake()
	cri.exec = func(_ context.Context, request *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
		fmt.Println("hook", request.GetCmd()[0])
		return &runtimeapi.ExecSyncResponse{}, nil
	}
	hook := v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"/bin/drain"}}}
	pod, t := podWithGrace("web", 45, withHook(hook)), &testing.T{}
	sandbox, _ := cri.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: sandboxConfig(pod)})
	created, _ := cri.CreateContainer(ctx, createRequest(t, pod, &pod.Spec.Containers[0], sandbox.GetPodSandboxId(), firstRun))
	_, _ = cri.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: created.GetContainerId()})
	endpoint, end, err := cri.serve()
	if err != nil {
		panic(err)
	}
	return endpoint, end
}
