package apistatus_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
	"github.com/kubegrace/kubegrace/shutdown/apistatus/apistatustest"
)

// report starts an API server with a node and a pod, and makes a reporter for it.
func report(pod *v1.Pod) (*apistatustest.Server, *apistatus.Reporter, error) {
	server, err := apistatustest.Start(nodeOf(ready), pod)
	if err != nil {
		return nil, nil, err
	}
	client, err := apistatus.NewClient(&rest.Config{Host: server.URL()})
	if err != nil {
		return nil, nil, err
	}
	reporter, err := apistatus.New(apistatus.Options{Client: client, NodeName: nodeName})
	return server, reporter, err
}

func ExampleReporter_PublishNode() {
	server, reporter, err := report(running("web"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, state := range []shutdown.NodeState{{ShuttingDown: true, Kind: shutdown.KindReboot}, {}} {
		fmt.Println(reporter.PublishNode(context.Background(), state))
		node, _ := server.Node(nodeName)
		for _, c := range node.Status.Conditions {
			fmt.Println(c.Type, c.Status, c.Reason, c.Message)
		}
	}
	fmt.Println(server.Close())
	// Output:
	// <nil>
	// Ready False KubeletNotReady node is shutting down
	// GracefulNodeShutdownInProgress True NodeShutdown node is shutting down: reboot
	// <nil>
	// Ready True KubeletReady kubelet is posting ready status
	// GracefulNodeShutdownInProgress False NodeShutdown no node shutdown is in progress
	// <nil>
}

func ExampleReporter_FlushPods() {
	server, reporter, err := report(running("web"))
	if err != nil {
		fmt.Println(err)
		return
	}
	final := running("web") // what the node knows of its end
	final.Status.Phase, final.Status.Reason = v1.PodFailed, shutdown.TerminatedReason
	fmt.Println(reporter.FlushPods(context.Background(), []*v1.Pod{final}))
	pod, _ := server.Pod("default", "web")
	fmt.Println(pod.Status.Phase, pod.Status.Reason, pod.Status.PodIP)

	server.Die()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	var unflushed *shutdown.UnflushedError
	errors.As(reporter.FlushPods(ctx, []*v1.Pod{final}), &unflushed)
	fmt.Println(unflushed.Pods)
	fmt.Println(server.Close())
	// Output:
	// <nil>
	// Failed Terminated 10.0.0.7
	// [default/web]
	// <nil>
}

func ExampleReporter_MarkReady() {
	server, reporter, err := report(running("web"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, ready := range []bool{false, true} {
		fmt.Println(reporter.MarkReady(context.Background(), []*v1.Pod{running("web")}, ready))
		pod, _ := server.Pod("default", "web")
		fmt.Printf("%s %q\n", pod.Status.Conditions[2].Status, pod.Status.Conditions[2].Message)
		fmt.Println("serves:", *apistatus.EndpointConditions(pod).Serving)
	}
	fmt.Println(server.Close())
	// Output:
	// <nil>
	// False "Pod is being terminated by its node."
	// serves: true
	// <nil>
	// True ""
	// serves: true
	// <nil>
}

func ExampleNodeConditions() {
	ready := v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue}
	for _, c := range apistatus.NodeConditions(shutdown.NodeState{ShuttingDown: true}, ready, time.Now()) {
		fmt.Println(c.Type, c.Status)
	}
	// Output:
	// Ready False
	// GracefulNodeShutdownInProgress True
}

func ExampleEndpointConditions() {
	endpoint := apistatus.EndpointConditions(running("web"))
	fmt.Println("ready:", *endpoint.Ready, "serving:", *endpoint.Serving, "terminating:", *endpoint.Terminating)
	// Output:
	// ready: false serving: true terminating: true
}
