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
	// connectTimeout bounds the first answer of a runtime, so that a socket that
	// nobody serves ends in an error and not in an agent that says nothing.
	connectTimeout = 5 * time.Second
	// maxMessageBytes is the kubelet's: the list of a full node is larger than
	// gRPC's own limit of 4 MiB.
	maxMessageBytes = 16 << 20
)

// Options say how pods are run. The zero value is useful.
type Options struct {
	// Gates answers for ContainerStopSignals (KEP-4960): when it is off, a
	// container's lifecycle.stopSignal is not passed on. nil means the default, on.
	Gates lifecycle.FeatureGate
	// LogDirectory is where the runtime writes the output of containers, one
	// folder per pod, laid out as the kubelet's /var/log/pods. It is a path of the
	// runtime's host. "" means that their output is dropped.
	LogDirectory string
}

// Runtime is a container runtime behind a CRI endpoint. It is made by [New].
type Runtime struct {
	runtime runtimeapi.RuntimeServiceClient
	images  runtimeapi.ImageServiceClient
	exits   *exits
	options Options
	name    string       // of the runtime, as it calls itself
	signals bool         // the gate ContainerStopSignals, asked once
	close   func() error // has its effect once
}

// New connects to the runtime at endpoint, which is written unix:///path/to/socket,
// and asks for its version, so that a wrong endpoint is an error here. ctx bounds
// the connecting only, and gives the logger of what goes on later. The caller must
// [Runtime.Close] what it gets.
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
		options: options,
		signals: features.Enabled(options.Gates, lifecycle.ContainerStopSignals),
	}
	if r.name, err = r.greet(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("failed to reach the container runtime at %q: %w", endpoint, err), conn.Close())
	}
	stopWatching := r.watchExits(ctx)
	r.close = sync.OnceValue(func() error {
		stopWatching()
		return conn.Close()
	})
	return r, nil
}

// dial does not connect yet. The delays between attempts are the kubelet's: with
// gRPC's own a runtime that was restarted would be missed for up to two minutes.
func dial(endpoint string) (*grpc.ClientConn, error) {
	delays := backoff.DefaultConfig
	delays.BaseDelay, delays.MaxDelay = 100*time.Millisecond, 3*time.Second
	return grpc.NewClient(endpoint,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: delays, MinConnectTimeout: connectTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes)))
}

// greet makes the first call, which connects, and gives the name of the runtime.
func (r *Runtime) greet(ctx context.Context) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	version, err := r.runtime.Version(ctx, &runtimeapi.VersionRequest{})
	return version.GetRuntimeName(), err
}

// watchExits starts the two goroutines that notice exits, and gives what ends them.
// They live until then, not until ctx ends, which bounds New alone.
func (r *Runtime) watchExits(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.exits = newExits(r.listAll)
	var running sync.WaitGroup
	running.Go(func() { r.exits.run(ctx) })
	running.Go(func() { r.followEvents(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// Close ends the connection and waits for the goroutines of the Runtime. Pods go on
// running; channels of [Runtime.Exited] that are open stay open. A second call does
// nothing and says the same.
func (r *Runtime) Close() error {
	if err := r.close(); err != nil {
		return fmt.Errorf("failed to close the connection to the container runtime: %w", err)
	}
	return nil
}
