package kuberuntime

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	internalapi "k8s.io/cri-api/pkg/apis"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/kubegrace"
	"k8s.io/kubernetes/pkg/vectors"
)

// script is the behaviour of a container when it is stopped.
type script struct {
	takes time.Duration // until it exits; it is killed at the timeout
	fails bool          // StopContainer fails
	hangs bool          // StopContainer returns when the CRI client gives up: two minutes after the timeout
}

// stop is a call of StopContainer.
type stop struct {
	id      string
	timeout int64
	at      time.Time
}

// criRuntime is a fake CRI client. The ID of a container is its name.
type criRuntime struct {
	internalapi.RuntimeService // nil, because its methods are not called

	mu         sync.Mutex // guards all below
	containers map[string]script
	stops      []stop
	sandboxErr error
	sandboxes  []string // the stopped ones
}

// StopContainer records the call and does what the container's script says.
func (r *criRuntime) StopContainer(ctx context.Context, id string, timeout int64) error {
	r.mu.Lock()
	r.stops = append(r.stops, stop{id, timeout, time.Now()})
	script, found := r.containers[id]
	r.mu.Unlock()
	switch {
	case !found:
		return status.Error(codes.NotFound, "no such container")
	case script.fails:
		return errors.New("the runtime is unavailable")
	case script.hangs:
		<-time.After(time.Second*time.Duration(timeout) + 2*time.Minute)
		return status.Error(codes.DeadlineExceeded, "context deadline exceeded")
	}
	select {
	case <-time.After(min(script.takes, time.Second*time.Duration(timeout))):
	case <-ctx.Done():
	}
	r.remove(id)
	return ctx.Err()
}

// StopPodSandbox records the call and returns sandboxErr.
func (r *criRuntime) StopPodSandbox(_ context.Context, id string) error {
	r.sandboxes = append(r.sandboxes, id)
	return r.sandboxErr
}

// remove removes a container.
func (r *criRuntime) remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.containers, id)
}

// recordedStops returns the calls of StopContainer so far.
func (r *criRuntime) recordedStops() []stop {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.stops)
}

// node is a runtime manager with one pod.
type node struct {
	*kubeGenericRuntimeManager

	runtime *criRuntime
	events  *record.FakeRecorder
	hooks   *hookFake
	pod     *v1.Pod
	running kubecontainer.Pod
}

// withGracePeriod runs a test in a synctest bubble, with a pod that has this grace period in seconds.
func withGracePeriod(t *testing.T, gracePeriod int64, test func(t *testing.T, n *node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &node{
			runtime: &criRuntime{containers: map[string]script{}},
			events:  record.NewFakeRecorder(100), hooks: &hookFake{},
			pod:     &v1.Pod{Spec: v1.PodSpec{TerminationGracePeriodSeconds: &gracePeriod}},
			running: kubecontainer.Pod{ID: "u-1", Name: "web", Namespace: "shop", Sandboxes: []*kubecontainer.Container{{ID: kubecontainer.ContainerID{Type: "containerd", ID: "sandbox"}}}},
		}
		n.pod.Name, n.pod.Namespace, n.pod.UID = "web", "shop", "u-1"
		vectors.SetGate(t, kubegrace.Termination, true)
		n.kubeGenericRuntimeManager = &kubeGenericRuntimeManager{
			runtimeService: n.runtime, runtimeName: "containerd", recorder: n.events,
			runner: n.hooks,
		}
		test(t, n)
	})
}

// subtestWithGracePeriod runs a subtest as withGracePeriod runs a test.
func subtestWithGracePeriod(t *testing.T, name string, gracePeriod int64, test func(t *testing.T, n *node)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { withGracePeriod(t, gracePeriod, test) })
}

// addRunning adds a running container that is not in the pod's spec.
func (n *node) addRunning(name string, how script) {
	n.runtime.containers[name] = how
	n.running.Containers = append(n.running.Containers, &kubecontainer.Container{ID: kubecontainer.ContainerID{Type: "containerd", ID: name}, Name: name})
}

// addMain adds a running container to the pod's spec.
func (n *node) addMain(name string, how script) *v1.Container {
	n.pod.Spec.Containers = append(n.pod.Spec.Containers, v1.Container{Name: name})
	n.addRunning(name, how)
	return &n.pod.Spec.Containers[len(n.pod.Spec.Containers)-1]
}

// addSidecar adds a running sidecar to the pod's spec.
func (n *node) addSidecar(name string, how script) {
	always := v1.ContainerRestartPolicyAlways
	n.pod.Spec.InitContainers = append(n.pod.Spec.InitContainers, v1.Container{Name: name, RestartPolicy: &always})
	n.addRunning(name, how)
}

// kill kills one container, with its own grace period and for no special reason.
func (n *node) kill(t *testing.T, name string) error {
	t.Helper()
	return n.killNamed(t, name, reasonUnknown, nil)
}

// killPod kills the pod as killRunning does, with the containers of n.running, and returns the error of the result.
func (n *node) killPod(t *testing.T) error {
	t.Helper()
	result := n.killRunning(t.Context(), n.running)
	return result.Error()
}

// killRunning kills the pod with its own grace period. running has the containers that the kubelet takes for running.
func (n *node) killRunning(ctx context.Context, running kubecontainer.Pod) kubecontainer.PodSyncResult {
	var noOverride *int64
	return n.killPodWithSyncResult(ctx, n.pod, running, noOverride)
}

// defaultMessage makes the message of the Killing event "Stopping container NAME".
const defaultMessage = ""

// noOrdering lets a container be stopped without waiting for others.
func noOrdering() *terminationOrdering { return nil }

// killNamed kills one container for a reason. override replaces its grace period; nil: it has its own.
func (n *node) killNamed(t *testing.T, name string, reason containerKillReason, override *int64) error {
	t.Helper()
	id := kubecontainer.ContainerID{Type: "containerd", ID: name}
	return n.killContainer(t.Context(), n.pod, id, name, defaultMessage, reason, override, noOrdering())
}

// stopTimeouts returns the last timeout of StopContainer for each container.
func (n *node) stopTimeouts() map[string]int64 {
	timeouts := map[string]int64{}
	for _, stop := range n.runtime.recordedStops() {
		timeouts[stop.id] = stop.timeout
	}
	return timeouts
}

// sleeping returns a preStop sleep hook.
func sleeping(seconds int64) *v1.Lifecycle {
	return &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: seconds}}}
}

// hookFake is a runner of hooks that records its calls. Its sleep hooks take longer than they should, by extra.
type hookFake struct {
	err           error         // of hooks that are not cancelled
	extra         time.Duration // added to each sleep
	mu            sync.Mutex    // guards all below
	ran           []string      // the IDs of the containers
	cancellations []error       // the errors of the cancelled contexts
}

// Run records the call. It sleeps if the hook does, and otherwise returns at once with err.
func (h *hookFake) Run(ctx context.Context, id kubecontainer.ContainerID, _ *v1.Pod, _ *v1.Container, handler *v1.LifecycleHandler) (string, error) {
	h.mu.Lock()
	h.ran = append(h.ran, id.String())
	h.mu.Unlock()
	if handler.Sleep != nil {
		select {
		case <-time.After(time.Second*time.Duration(handler.Sleep.Seconds) + h.extra):
		case <-ctx.Done():
			h.mu.Lock()
			h.cancellations = append(h.cancellations, ctx.Err())
			h.mu.Unlock()
			return "", ctx.Err()
		}
	}
	return "", h.err
}

// cancelled returns the errors of the cancelled contexts.
func (h *hookFake) cancelled() []error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.cancellations)
}
