package criruntime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"

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
	// Complete adds to a pod what the runtime does not know: its priority, which of its
	// containers are sidecars, probes, restartPolicy, conditions. It is called for each pod of
	// a list, in the goroutine of the caller of [Runtime.Pods]. It may change the pod, which
	// is a new one each time, and return it, or return another pod of the same name, namespace
	// and UID, such as that of an informer, which is not changed. Pods sets phase, addresses
	// and container statuses of what it returns from the runtime. With nil the pod is left
	// out of the list. Complete must not block. nil means that nothing is added.
	Complete func(pod *v1.Pod) *v1.Pod
	// HostIP is the address of the node. Pods in the node's network have it as
	// status.podIP, and their httpGet hooks without a host are sent to it. Without it those
	// hooks fail.
	HostIP string
}

// Runtime stops containers of the container runtime at a CRI endpoint, runs commands in
// them, tells their exits and lists their pods. [Dial] makes one.
type Runtime struct {
	options Options
	conn    *grpc.ClientConn
	client  runtimeapi.RuntimeServiceClient
	exits   *exitWatcher
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
	r.exits = newExitWatcher(func(ctx context.Context) ([]*runtimeapi.Container, error) {
		response, err := r.client.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
		return response.GetContainers(), err
	})
	stopWatching := r.exits.start(ctx, r.client)
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

// Version asks the runtime for its name and version, such as containerd and 2.2.0. An agent
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

// reader returns a reader of pods. It asks for the name of the runtime once.
func (r *Runtime) reader(ctx context.Context) (reader, error) {
	name := r.name.Load()
	if name == nil {
		if _, _, err := r.Version(ctx); err != nil {
			return reader{}, err
		}
		name = r.name.Load()
	}
	return reader{r.client, *name, r.options.HostIP}, nil
}

// podsTimeout bounds the reading of all pods.
const podsTimeout = 30 * time.Second

// Pods returns the pods of the runtime that have not ended: those with a ready sandbox or a
// container that runs. They are new ones each time, sorted by namespace, name and UID.
//
// A pod that a kubelet has made has its name, namespace, UID, labels and annotations, its
// grace period, whether it is in the node's network, and of each container the name, the image, the preStop hook,
// the ports and what its status says: state, restart count and ID. Of several attempts of a
// container it has the one that runs, else the newest. A kubelet does not tell its runtime which
// containers are init containers or sidecars, so that all are in spec.containers; nor the pod's priority,
// restartPolicy, probes and stop signals. Options.Complete can add them.
//
// A container that runs has the time of its creation as startedAt. What no kubelet has made is named by
// the metadata that CRI requires, and has no grace period and no hooks.
//
// While the runtime does not answer, and after 30 s, Pods fails; a pod is never missing for
// that reason. Pods fits the option of the same name of package shutdown.
func (r *Runtime) Pods(ctx context.Context) ([]*v1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, podsTimeout)
	defer cancel()
	reader, err := r.reader(ctx)
	var found []foundPod
	if err == nil {
		found, err = reader.list(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to list the pods of the container runtime: %w", known(err))
	}
	pods := make([]*v1.Pod, 0, len(found))
	for _, f := range found {
		if !f.isLive() {
			continue
		}
		pod, err := reader.read(ctx, f)
		if err != nil {
			return nil, fmt.Errorf("failed to read pod %s from the container runtime: %w", f.identity, known(err))
		}
		if pod = r.options.complete(pod); pod != nil {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// PodStatus returns the status of a pod with phase, addresses and container statuses as the runtime has
// them now: exit codes, too. It returns nil if the runtime does not have the pod, or does not
// answer. It fits the option Status of package podkiller.
func (r *Runtime) PodStatus(ctx context.Context, pod *v1.Pod) *v1.PodStatus {
	ctx, cancel := context.WithTimeout(ctx, podsTimeout)
	defer cancel()
	reader, err := r.reader(ctx)
	var current *v1.Pod
	if err == nil {
		current, err = reader.find(ctx, identityOf(pod))
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to read the status of a pod from the container runtime", "pod", klog.KObj(pod))
	}
	if current == nil {
		return nil
	}
	return mergedStatus(&pod.Spec, &pod.Status, &current.Status)
}

// StopPodSandbox stops the sandboxes of a pod, which releases its network; they are not
// removed. It is for a pod whose containers have ended: a runtime kills those that still
// run without a grace period. A pod that the runtime does not know is no error.
func (r *Runtime) StopPodSandbox(ctx context.Context, pod *v1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, stopMargin)
	defer cancel()
	sandboxes, err := r.client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return fmt.Errorf("failed to list the sandboxes of pod %s: %w", identityOf(pod), known(err))
	}
	var errs []error
	for _, sandbox := range sandboxes.GetItems() {
		if sandboxIdentity(sandbox) != identityOf(pod) {
			continue
		}
		_, err := r.client.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: sandbox.GetId()})
		if err != nil && !isNotFound(err) {
			errs = append(errs, fmt.Errorf("failed to stop sandbox %q of pod %s: %w", sandbox.GetId(), identityOf(pod), known(err)))
		}
	}
	return errors.Join(errs...)
}
