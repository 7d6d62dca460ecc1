package cri

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/podruntime"
	"github.com/kubegrace/kubegrace/internal/features"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime"
)

// connectTimeout bounds the first call. Without it the agent would wait silently at a
// socket that nobody serves.
const connectTimeout = 5 * time.Second

// Options say how pods are run. The zero value can be used as it is.
type Options struct {
	// Gates is asked for ContainerStopSignals (KEP-4960). If that gate is off, the
	// lifecycle.stopSignal of a container is not passed on. nil means the default, on.
	Gates lifecycle.FeatureGate
	// LogDirectory is the folder where the runtime writes the output of containers, with
	// one folder per pod, laid out as the kubelet's /var/log/pods. It is a path on the
	// runtime's host. If it is "", the output is dropped.
	LogDirectory string
}

// Runtime starts pods in the container runtime at a CRI endpoint; criruntime stops them.
// [New] makes one.
type Runtime struct {
	*criruntime.Runtime

	client  runtimeapi.RuntimeServiceClient
	images  runtimeapi.ImageServiceClient
	configs configBuilder
}

var (
	_ podruntime.Runtime      = (*Runtime)(nil)
	_ podruntime.StatusReader = (*Runtime)(nil)
)

// New connects to the runtime at endpoint, which is written unix:///path/to/socket, and
// asks for its version, so that a wrong endpoint is an error of New. ctx bounds the
// connecting only; its logger is used until Close. The caller must call Close.
func New(ctx context.Context, endpoint string, options Options) (*Runtime, error) {
	runtime, err := criruntime.Dial(ctx, endpoint, criruntime.Options{})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if _, _, err := runtime.Version(ctx); err != nil {
		return nil, errors.Join(err, runtime.Close())
	}
	return &Runtime{
		Runtime: runtime,
		client:  runtimeapi.NewRuntimeServiceClient(runtime.Conn()),
		images:  runtimeapi.NewImageServiceClient(runtime.Conn()),
		configs: configBuilder{
			logDirectory: options.LogDirectory,
			stopSignals:  features.Enabled(options.Gates, lifecycle.ContainerStopSignals),
		},
	}, nil
}

// StopPod removes the sandboxes of a pod and their containers. Containers that still run
// are killed without grace, so callers stop them first. A pod that the runtime does not
// know is no error.
func (r *Runtime) StopPod(ctx context.Context, pod *v1.Pod) error {
	sandboxes, err := r.listSandboxes(ctx, pod)
	if err != nil {
		return err
	}
	var errs []error
	for _, sandbox := range sandboxes {
		errs = append(errs, r.removeSandbox(ctx, pod, sandbox.GetId()))
	}
	return errors.Join(errs...)
}

// isNotFound reports whether the runtime does not know the object of a call. Removals treat
// that as success.
func isNotFound(err error) bool { return status.Code(err) == codes.NotFound }

// withCause adds the cause of ctx to err if ctx has ended: an error of gRPC says only
// that the call was cancelled.
func withCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}
