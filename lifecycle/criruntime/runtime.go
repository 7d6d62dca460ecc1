package criruntime

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
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
	// maxMessageBytes is the kubelet's limit. The containers of a full node exceed gRPC's 4 MiB.
	maxMessageBytes = 16 << 20
)

// Options configures a [Runtime]. The zero value is valid.
type Options struct {
	// HostIP is the node's address, which becomes status.podIP of pods in the host network. Their
	// httpGet hooks without a host use it. If it is "", those hooks fail. A value that is no IP address is
	// an error.
	HostIP string
}

// Runtime is a client of the container runtime at a CRI endpoint. Make one with [Dial].
type Runtime struct {
	options   Options
	conn      *grpc.ClientConn
	client    runtimeapi.RuntimeServiceClient
	exits     *exitWatcher
	usesUnary atomic.Bool            // the runtime has refused to stream lists, so they are requested in one message
	name      atomic.Pointer[string] // the runtime's name, once known
	close     func() error           // stops exits and closes conn; a second call returns the first one's result
}

// Dial returns a Runtime for the container runtime at endpoint, which must have the form
// unix:///path/to/socket. Dial does not wait for the runtime: while it is down, each call fails. The
// logger of ctx is used until [Runtime.Close], which the caller must call; the end of ctx has no effect.
func Dial(ctx context.Context, endpoint string, options Options) (*Runtime, error) {
	if err := checkEndpoint(endpoint); err != nil {
		return nil, err
	}
	if options.HostIP != "" && net.ParseIP(options.HostIP) == nil {
		return nil, fmt.Errorf("Options.HostIP %q: must be an IP address", options.HostIP)
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

// checkEndpoint returns an error unless endpoint has the form unix:///path/to/socket, as the kubelet's
// --container-runtime-endpoint has on Linux.
func checkEndpoint(endpoint string) error {
	const want = "want unix:///path/to/socket"
	if endpoint == "" {
		return fmt.Errorf("container runtime endpoint is not set, %s", want)
	}
	parsed, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return fmt.Errorf("container runtime endpoint %q is not a URL, %s: %w", endpoint, want, err)
	case parsed.Scheme != "unix":
		return fmt.Errorf("container runtime endpoint %q has the scheme %q, %s", endpoint, parsed.Scheme, want)
	case parsed.Host != "" || !path.IsAbs(parsed.Path):
		return fmt.Errorf("container runtime endpoint %q has no absolute path, %s", endpoint, want)
	}
	return nil
}

// dial returns a connection, which connects at the first call. Its pauses between attempts to connect are the
// kubelet's: with gRPC's default it could take two minutes until a restarted runtime is found.
func dial(endpoint string) (*grpc.ClientConn, error) {
	pauses := backoff.DefaultConfig
	pauses.BaseDelay, pauses.MaxDelay = 100*time.Millisecond, 3*time.Second
	return grpc.NewClient(endpoint,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: pauses, MinConnectTimeout: connectTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes)))
}

// Close closes the connection and waits for the Runtime's goroutine. Containers keep running, and open
// channels of [Runtime.Exited] stay open. Further calls return the result of the first.
func (r *Runtime) Close() error {
	if err := r.check(); err != nil {
		return err
	}
	if err := r.close(); err != nil {
		return fmt.Errorf("failed to close the connection to the container runtime: %w", err)
	}
	return nil
}

var (
	errNotMade = errors.New("the Runtime was not made with Dial")
	errNoPod   = errors.New("the pod is nil")
)

// check returns an error if a method cannot work: the Runtime was not made with Dial, or one of the pods that
// the caller has passed is nil.
func (r *Runtime) check(pods ...*v1.Pod) error {
	if r == nil || r.client == nil {
		return errNotMade
	}
	if slices.Contains(pods, nil) {
		return errNoPod
	}
	return nil
}

// runtimeName returns the runtime's name, such as "containerd". It asks the runtime only once.
func (r *Runtime) runtimeName(ctx context.Context) (string, error) {
	if name := r.name.Load(); name != nil {
		return *name, nil
	}
	response, err := r.client.Version(ctx, &runtimeapi.VersionRequest{})
	if err != nil {
		return "", err
	}
	name := response.GetRuntimeName()
	r.name.Store(&name)
	return name, nil
}
