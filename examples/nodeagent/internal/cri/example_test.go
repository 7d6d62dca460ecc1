package cri_test

import (
	"context"
	"fmt"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/cri"
)

func ExampleNew() {
	_, err := cri.New(context.Background(), "tcp://127.0.0.1:1234", cri.Options{})
	fmt.Println(err)
	// Output: container runtime endpoint "tcp://127.0.0.1:1234" has the scheme "tcp", want unix:///path/to/socket
}

func Example() {
	ctx := context.Background()
	runtime, end, err := exampleRuntime(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	containers, err := runtime.StartPod(ctx, onePod(nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("started", containers[0].Name)

	output, err := runtime.RunInContainer(ctx, containers[0].ID, []string{"echo", "bye"}, time.Minute)
	fmt.Println("hook", string(output), err)

	exited := runtime.Exited(containers[0].ID)
	fmt.Println("stop", runtime.StopContainer(ctx, containers[0].ID, 30))
	<-exited
	fmt.Println("remove", runtime.StopPod(ctx, onePod(nil)))
	// Output:
	// started server
	// hook bye <nil>
	// stop <nil>
	// remove <nil>
}

// exampleRuntime connects to a scripted runtime, which needs no containerd.
func exampleRuntime(ctx context.Context) (runtime *cri.Runtime, end func(), err error) {
	s := newStub()
	s.exec = func(_ context.Context, request *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
		return &runtimeapi.ExecSyncResponse{Stdout: []byte(request.GetCmd()[1])}, nil
	}
	endpoint, stop, err := s.serve()
	if err != nil {
		return nil, nil, err
	}
	runtime, err = cri.New(ctx, endpoint, cri.Options{})
	if err != nil {
		stop()
		return nil, nil, err
	}
	return runtime, func() {
		if err := runtime.Close(); err != nil {
			fmt.Println(err)
		}
		stop()
	}, nil
}
