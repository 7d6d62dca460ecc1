package criruntime_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/lifecycle/criruntime"
)

const (
	// waitAtMost is far longer than any asserted time, because the machine may be busy.
	waitAtMost = 20 * time.Second
	pollEvery  = 5 * time.Millisecond
)

// call is a call that the fake has received.
type call struct {
	method         string
	request        any
	clientDeadline time.Duration // from the call; 0: none
}

type fakeContainer struct {
	config  *runtimeapi.ContainerConfig
	sandbox string // the ID of its sandbox
	status  *runtimeapi.ContainerStatus
}

// fake is a container runtime that stores sandboxes and containers, runs nothing, and records the calls that it gets. Tests
// set the fields above mu before they serve it.
type fake struct {
	runtimeapi.UnimplementedRuntimeServiceServer

	exec    func(context.Context, *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error)
	network *runtimeapi.PodSandboxNetworkStatus // of all sandboxes
	streams bool                                // the fake has the methods that stream lists, one item in each message

	mu         sync.Mutex
	calls      []call
	failures   map[string]error // by method, set by fail: intercept returns them instead of calling the method
	clock      int64            // nanoseconds; advances by 1 with each sandbox and container, and is a part of their IDs
	sandboxes  map[string]*runtimeapi.PodSandbox
	configs    map[string]*runtimeapi.PodSandboxConfig // by sandbox
	containers map[string]*fakeContainer
}

// newFake returns a fake without sandboxes and containers.
func newFake() *fake {
	return &fake{
		failures:   map[string]error{},
		sandboxes:  map[string]*runtimeapi.PodSandbox{},
		configs:    map[string]*runtimeapi.PodSandboxConfig{},
		containers: map[string]*fakeContainer{},
	}
}

// serve serves the fake on a socket. t.TempDir would be too long for its path.
func (s *fake) serve() (endpoint string, stop func(), err error) {
	folder, err := os.MkdirTemp("", "cri")
	if err != nil {
		return "", nil, err
	}
	socket := filepath.Join(folder, "socket")
	end, err := s.serveAt(socket)
	return "unix://" + socket, func() {
		end()
		_ = os.RemoveAll(folder) // a leftover folder must not fail a test
	}, err
}

// serveAt serves the fake on a socket until stop is called.
func (s *fake) serveAt(socket string) (stop func(), err error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(s.intercept), grpc.UnknownServiceHandler(s.stream),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, _ grpc.StreamHandler) error {
			return s.stream(srv, stream) // if CRI has the method (v0.37)
		}))
	runtimeapi.RegisterRuntimeServiceServer(server, s)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // fails only if Stop was early
	}()
	return func() {
		server.Stop()
		<-served
	}, nil
}

// dial serves the fake until the end of the test and returns a Runtime that uses it.
func (s *fake) dial(t *testing.T, options criruntime.Options) *criruntime.Runtime {
	t.Helper()
	endpoint, stop, err := s.serve()
	require.NoError(t, err)
	t.Cleanup(stop)
	return dial(t, endpoint, options)
}

// dial returns a Runtime for an endpoint, which is closed at the end of the test.
func dial(t *testing.T, endpoint string, options criruntime.Options) *criruntime.Runtime {
	t.Helper()
	runtime, err := criruntime.Dial(t.Context(), endpoint, options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, runtime.Close()) })
	return runtime
}

// intercept records each call that the fake gets. If a test has set an error for the method with fail, intercept returns it
// instead of calling the method.
func (s *fake) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	received := call{method: path.Base(info.FullMethod), request: request}
	if deadline, ok := ctx.Deadline(); ok {
		received.clientDeadline = time.Until(deadline)
	}
	s.mu.Lock()
	s.calls = append(s.calls, received)
	failure := s.failures[received.method]
	s.mu.Unlock()
	if failure != nil {
		return nil, failure
	}
	return handler(ctx, request)
}

// stream answers a method that streams a list, if streams is set. It sends one item in each message; the messages are of the
// unary response's type, which has the same fields. Then it returns the error that fail has set for the method.
func (s *fake) stream(_ any, stream grpc.ServerStream) error {
	name, _ := grpc.MethodFromServerStream(stream)
	method := path.Base(name)
	s.mu.Lock()
	failure := s.failures[method]
	s.mu.Unlock()
	switch {
	case !s.streams:
		return status.Error(codes.Unimplemented, "unknown method "+method)
	case method == "StreamContainers":
		request := &runtimeapi.ListContainersRequest{}
		if err := stream.RecvMsg(request); err != nil {
			return err
		}
		all, err := s.ListContainers(stream.Context(), request)
		for _, c := range all.GetContainers() {
			err = errors.Join(err, stream.SendMsg(&runtimeapi.ListContainersResponse{Containers: []*runtimeapi.Container{c}}))
		}
		return errors.Join(err, failure)
	default:
		all, err := s.ListPodSandbox(stream.Context(), &runtimeapi.ListPodSandboxRequest{})
		for _, sandbox := range all.GetItems() {
			err = errors.Join(err, stream.SendMsg(&runtimeapi.ListPodSandboxResponse{Items: []*runtimeapi.PodSandbox{sandbox}}))
		}
		return errors.Join(err, failure)
	}
}

// succeed makes all later calls of method succeed again.
func (s *fake) succeed(method string) { s.fail(method, nil) }

// fail makes all later calls of method fail with err.
func (s *fake) fail(method string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures[method] = err
}

// callsOf returns the calls of one method so far.
func (s *fake) callsOf(method string) []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.calls), func(c call) bool { return c.method != method })
}

// exitWith makes a container exit with a code.
func (s *fake) exitWith(id string, code int32) {
	s.change(id, func(c *runtimeapi.ContainerStatus) {
		c.State, c.ExitCode = runtimeapi.ContainerState_CONTAINER_EXITED, code
	})
}

// change edits the status of a container.
func (s *fake) change(id string, edit func(*runtimeapi.ContainerStatus)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	edit(s.containers[id].status)
}

// absent is what state returns for a container that does not exist.
const absent runtimeapi.ContainerState = -1

// state returns the state of a container, or absent.
func (s *fake) state(id string) runtimeapi.ContainerState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.containers[id]; c != nil {
		return c.status.GetState()
	}
	return absent
}

func (s *fake) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{RuntimeName: "fake", RuntimeVersion: "v1"}, nil
}

// RunPodSandbox gives the sandbox the ID sandbox-N, where N is the fake's clock.
func (s *fake) RunPodSandbox(_ context.Context, request *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock++
	id, config := fmt.Sprintf("sandbox-%d", s.clock), request.GetConfig()
	s.sandboxes[id] = &runtimeapi.PodSandbox{
		Id: id, Metadata: config.GetMetadata(), Labels: config.GetLabels(), Annotations: config.GetAnnotations(), CreatedAt: s.clock,
	}
	s.configs[id] = config
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: id}, nil
}

func (s *fake) ListPodSandbox(context.Context, *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &runtimeapi.ListPodSandboxResponse{Items: slices.Collect(maps.Values(s.sandboxes))}, nil // CRI promises no order
}

// PodSandboxStatus returns the namespaces with which the sandbox was created, and the network that the test has set.
func (s *fake) PodSandboxStatus(_ context.Context, request *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	config, ok := s.configs[request.GetPodSandboxId()]
	if !ok {
		return nil, status.Error(codes.NotFound, "no such sandbox")
	}
	options := config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	return &runtimeapi.PodSandboxStatusResponse{Status: &runtimeapi.PodSandboxStatus{
		Network: s.network, Linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: options}},
	}}, nil
}

func (s *fake) StopPodSandbox(_ context.Context, request *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sandboxes[request.GetPodSandboxId()].State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	return &runtimeapi.StopPodSandboxResponse{}, nil
}

// CreateContainer gives the container the ID NAME-N, where N is the fake's clock.
func (s *fake) CreateContainer(_ context.Context, request *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock++
	config := request.GetConfig()
	id := fmt.Sprintf("%s-%d", config.GetMetadata().GetName(), s.clock)
	s.containers[id] = &fakeContainer{config, request.GetPodSandboxId(), &runtimeapi.ContainerStatus{
		Id: id, Metadata: config.GetMetadata(), Labels: config.GetLabels(), Annotations: config.GetAnnotations(), CreatedAt: s.clock,
	}}
	return &runtimeapi.CreateContainerResponse{ContainerId: id}, nil
}

// StartContainer makes the container run.
func (s *fake) StartContainer(_ context.Context, request *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	s.change(request.GetContainerId(), func(c *runtimeapi.ContainerStatus) { c.State = runtimeapi.ContainerState_CONTAINER_RUNNING })
	return &runtimeapi.StartContainerResponse{}, nil
}

// StopContainer stops a running container, and ignores others.
func (s *fake) StopContainer(_ context.Context, request *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	switch s.state(request.GetContainerId()) {
	case absent:
		return nil, status.Error(codes.NotFound, "no such container")
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		s.exitWith(request.GetContainerId(), 0)
	default:
	}
	return &runtimeapi.StopContainerResponse{}, nil
}

func (s *fake) RemoveContainer(_ context.Context, request *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.containers, request.GetContainerId())
	return &runtimeapi.RemoveContainerResponse{}, nil
}

// ListContainers lists the containers that match both the sandbox and the labels of the filter.
func (s *fake) ListContainers(_ context.Context, request *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	response, filter := &runtimeapi.ListContainersResponse{}, request.GetFilter() // a nil filter matches all
	for id, c := range s.containers {
		labels := c.config.GetLabels()
		isListed := filter.GetPodSandboxId() == "" || filter.GetPodSandboxId() == c.sandbox
		for name, value := range filter.GetLabelSelector() {
			isListed = isListed && labels[name] == value
		}
		if isListed {
			response.Containers = append(response.Containers, &runtimeapi.Container{
				Id: id, PodSandboxId: c.sandbox, Metadata: c.config.GetMetadata(), Image: c.config.GetImage(), State: c.status.GetState(),
				CreatedAt: c.status.GetCreatedAt(), Labels: labels, Annotations: c.config.GetAnnotations(),
			})
		}
	}
	return response, nil
}

func (s *fake) ContainerStatus(_ context.Context, request *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.containers[request.GetContainerId()]
	if !ok {
		return nil, status.Error(codes.NotFound, "no such container")
	}
	return &runtimeapi.ContainerStatusResponse{Status: c.status}, nil
}

func (s *fake) ExecSync(ctx context.Context, request *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	return s.exec(ctx, request)
}
