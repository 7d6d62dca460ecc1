package criruntime

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

var (
	_ lifecycle.Runtime       = (*Runtime)(nil)
	_ lifecycle.CommandRunner = (*Runtime)(nil)
	_ lifecycle.ExitWatcher   = (*Runtime)(nil)
)

const (
	// connectTimeout bounds one attempt to connect.
	connectTimeout = 5 * time.Second
	// maxMessageBytes is the kubelet's limit. The list of the containers of a full node
	// is larger than gRPC's default of 4 MiB.
	maxMessageBytes = 16 << 20
)

// Options say what a [Runtime] cannot read from its runtime. The zero value can be used as
// it is.
type Options struct {
	// HostIP is the address of the node. Pods in the node's network have it as
	// status.podIP, and their httpGet hooks without a host are sent to it. Without it those
	// hooks fail.
	HostIP string
}

// Runtime lists and stops containers of the container runtime at a CRI endpoint, runs commands in
// them, tells their exits and lists their pods. [Dial] makes one.
type Runtime struct {
	options Options
	conn    *grpc.ClientConn
	client  runtimeapi.RuntimeServiceClient
	exits   *exitWatcher
	unary   atomic.Bool            // the runtime does not stream lists
	name    atomic.Pointer[string] // of the runtime, once it has told it
	close   func() error           // the second and later calls return the result of the first
}

// Dial returns a Runtime for the container runtime at endpoint, which is written
// unix:///path/to/socket. An endpoint that is written otherwise is an error. Dial does not
// wait for the runtime: one that is not there is no error, and each call fails until it
// is. [Runtime.Version] tells whether it is there. The end of ctx means nothing; its logger is
// used until [Runtime.Close], which the caller must call.
func Dial(ctx context.Context, endpoint string, options Options) (*Runtime, error) {
	if err := checkEndpoint(endpoint); err != nil {
		return nil, err
	}
	conn, err := dial(endpoint)
	if err != nil {
		return nil, fmt.Errorf("failed to use container runtime endpoint %q: %w", endpoint, err)
	}
	r := &Runtime{options: options, conn: conn, client: runtimeapi.NewRuntimeServiceClient(conn)}
	r.exits = newExitWatcher(ctx, func(ctx context.Context) ([]*runtimeapi.Container, error) { return r.listContainers(ctx, nil) })
	r.close = sync.OnceValue(func() error {
		r.exits.close()
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

// Close closes the connection and returns when the goroutines of the Runtime have ended.
// Containers keep running; channels of [Runtime.Exited] that are open stay open. A second
// call does nothing and returns the same as the first.
func (r *Runtime) Close() error {
	if err := r.close(); err != nil {
		return fmt.Errorf("failed to close the connection to the container runtime: %w", err)
	}
	return nil
}

// Conn returns the connection to the runtime, for calls of CRI that this package does not
// make. [Runtime.Close] closes it.
func (r *Runtime) Conn() *grpc.ClientConn { return r.conn }

// Version asks the runtime for its name and version, such as containerd and 2.3.7. An agent
// that wants to know at its start whether the endpoint is right calls it.
func (r *Runtime) Version(ctx context.Context) (name, version string, err error) {
	response, err := r.client.Version(ctx, &runtimeapi.VersionRequest{})
	if err != nil {
		return "", "", fmt.Errorf("failed to reach the container runtime at %q: %w", r.conn.Target(), known(err))
	}
	name = response.GetRuntimeName()
	r.name.Store(&name)
	return name, response.GetRuntimeVersion(), nil
}

// runtimeName returns the name of the runtime, which is asked for once.
func (r *Runtime) runtimeName(ctx context.Context) (string, error) {
	if name := r.name.Load(); name != nil {
		return *name, nil
	}
	name, _, err := r.Version(ctx)
	return name, err
}
