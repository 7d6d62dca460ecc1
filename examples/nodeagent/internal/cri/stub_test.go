package cri_test

import (
	"context"
	"net"
	"os"
	"path"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/cri"
)

// call is one call that the stub has received.
type call struct {
	method  string
	request any
	timeout time.Duration // until the client's deadline; 0: it had none
}

// stub is a scripted container runtime. It keeps sandboxes and containers as a real
// one does, and records its calls. Tests set the fields above mu before it serves.
type stub struct {
	runtimeapi.UnimplementedRuntimeServiceServer

	ignoreStopSignal bool             // as containerd 1.6 does
	exitCodes        map[string]int32 // by container name: the container exits with the code when it is started
	images           []string         // the images it has; nil: all

	mu           sync.Mutex
	calls        []call
	failures     map[string]error // by method
	loseAnswerOf string           // the method whose calls are carried out and answered with an error
	sandboxes    map[string]*runtimeapi.PodSandbox
	containers   map[string]*runtimeapi.ContainerStatus
	inSandbox    map[string]string // from container ID to sandbox ID
}

func newStub() *stub {
	return &stub{
		failures:   map[string]error{},
		sandboxes:  map[string]*runtimeapi.PodSandbox{},
		containers: map[string]*runtimeapi.ContainerStatus{},
		inSandbox:  map[string]string{},
	}
}

// serve serves the stub on a socket. The path of t.TempDir would be too long for one.
func (s *stub) serve() (endpoint string, stop func(), err error) {
	folder, err := os.MkdirTemp("", "cri")
	if err != nil {
		return "", nil, err
	}
	socket := filepath.Join(folder, "socket")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return "", nil, err
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(s.intercept))
	runtimeapi.RegisterRuntimeServiceServer(server, s)
	runtimeapi.RegisterImageServiceServer(server, &stubImages{stub: s})
	var serving sync.WaitGroup
	serving.Go(func() { err = server.Serve(listener) })
	return "unix://" + socket, func() {
		server.Stop()
		serving.Wait()
		_ = os.RemoveAll(folder) // a folder that stays in /tmp must not fail a test
	}, nil
}

// connect serves the stub until the end of the test and returns a Runtime that uses it.
func (s *stub) connect(t *testing.T, options cri.Options) *cri.Runtime {
	t.Helper()
	endpoint, stop, err := s.serve()
	require.NoError(t, err)
	t.Cleanup(stop)
	runtime, err := cri.New(t.Context(), endpoint, options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, runtime.Close()) })
	return runtime
}

func (s *stub) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	received := call{method: path.Base(info.FullMethod), request: request}
	if deadline, ok := ctx.Deadline(); ok {
		received.timeout = time.Until(deadline)
	}
	s.mu.Lock()
	s.calls = append(s.calls, received)
	failure := s.failures[received.method]
	loseAnswer := s.loseAnswerOf == received.method
	s.mu.Unlock()
	if failure != nil {
		return nil, failure
	}
	response, err := handler(ctx, request)
	if loseAnswer {
		return nil, status.Error(codes.Unavailable, "lost")
	}
	return response, err
}

// fail makes all later calls of method fail with err; nil makes them succeed again.
func (s *stub) fail(method string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures[method] = err
}

// callsOf returns the calls of one method so far.
func (s *stub) callsOf(method string) []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var calls []call
	for _, call := range s.calls {
		if call.method == method {
			calls = append(calls, call)
		}
	}
	return calls
}

// requests returns the requests of type T so far, in order.
func requests[T any](s *stub) []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []T
	for _, call := range s.calls {
		if request, ok := call.request.(T); ok {
			found = append(found, request)
		}
	}
	return found
}

// exit makes a container exit.
func (s *stub) exit(id string, code int32) {
	s.mu.Lock()
	s.exitLocked(id, code)
	s.mu.Unlock()
}

func (s *stub) exitLocked(id string, code int32) {
	s.containers[id].State = runtimeapi.ContainerState_CONTAINER_EXITED
	s.containers[id].ExitCode = code
}

// count counts what has not been removed.
func (s *stub) count() (sandboxes, containers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sandboxes), len(s.containers)
}
