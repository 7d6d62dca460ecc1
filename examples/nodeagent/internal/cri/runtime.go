package cri

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/internal/features"
	"github.com/kubegrace/kubegrace/lifecycle"
)

const (
	// connectTimeout bounds the first call. Without it the agent would wait silently at a
	// socket that nobody serves.
	connectTimeout = 5 * time.Second
	// maxMessageBytes is the kubelet's limit. The list of the containers of a full node
	// is larger than gRPC's default of 4 MiB.
	maxMessageBytes = 16 << 20
)

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

// Runtime runs pods in the container runtime at a CRI endpoint. [New] makes one.
type Runtime struct {
	runtime runtimeapi.RuntimeServiceClient
	images  runtimeapi.ImageServiceClient
	exits   *exitWatcher
	configs configBuilder
	name    string       // of the runtime, from its answer to Version
	close   func() error // the second and later calls return the result of the first
}

// New connects to the runtime at endpoint, which is written unix:///path/to/socket, and
// asks for its version, so that a wrong endpoint is an error of New. ctx bounds the
// connecting only; its logger is used until Close. The caller must call [Runtime.Close].
func New(ctx context.Context, endpoint string, options Options) (*Runtime, error) {
	if err := checkEndpoint(endpoint); err != nil {
		return nil, err
	}
	conn, err := dial(endpoint)
	if err != nil {
		return nil, fmt.Errorf("failed to use container runtime endpoint %q: %w", endpoint, err)
	}
	r := &Runtime{
		runtime: runtimeapi.NewRuntimeServiceClient(conn),
		images:  runtimeapi.NewImageServiceClient(conn),
		configs: configBuilder{
			logDirectory: options.LogDirectory,
			stopSignals:  features.Enabled(options.Gates, lifecycle.ContainerStopSignals),
		},
	}
	if r.name, err = r.connect(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("failed to reach the container runtime at %q: %w", endpoint, err), conn.Close())
	}
	stopWatching := r.startWatchingExits(ctx)
	r.close = sync.OnceValue(func() error {
		stopWatching()
		return conn.Close()
	})
	return r, nil
}

// dial makes a client connection. It connects with the first call. Its pauses between
// attempts to connect are the kubelet's: with gRPC's own pauses it could take two minutes
// to notice that the runtime is back.
func dial(endpoint string) (*grpc.ClientConn, error) {
	pauses := backoff.DefaultConfig
	pauses.BaseDelay, pauses.MaxDelay = 100*time.Millisecond, 3*time.Second
	return grpc.NewClient(endpoint,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: pauses, MinConnectTimeout: connectTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes)))
}

// connect makes the first call, which connects, and returns the name of the runtime.
func (r *Runtime) connect(ctx context.Context) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	version, err := r.runtime.Version(ctx, &runtimeapi.VersionRequest{})
	return version.GetRuntimeName(), err
}

// startWatchingExits starts the two goroutines that notice exits. They run until the
// returned function is called, which waits for them. The end of ctx does not end them,
// because the caller of New may bound New by it.
func (r *Runtime) startWatchingExits(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.exits = newExitWatcher(r.listContainers)
	var running sync.WaitGroup
	running.Go(func() { r.exits.run(ctx) })
	running.Go(func() { r.readEvents(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// Close closes the connection and returns when the goroutines of the Runtime have ended.
// Pods keep running; channels of [Runtime.Exited] that are open stay open. A second call
// does nothing and returns the same as the first.
func (r *Runtime) Close() error {
	if err := r.close(); err != nil {
		return fmt.Errorf("failed to close the connection to the container runtime: %w", err)
	}
	return nil
}
