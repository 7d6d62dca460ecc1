package criruntime

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// Running lists the containers of a pod that have not exited. It includes created containers, which could
// still be started, and containers in an unknown state. Began is the creation time.
//
// It finds containers by the kubelet's label of the pod's UID (of a mirror pod: that of its static pod) or, for a
// pod without a UID, by those of its namespace and name. If no container, running or exited, has the labels, it
// lists the containers in the pod's sandboxes.
func (r *Runtime) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	if err := r.check(pod); err != nil {
		return nil, err
	}
	containers, err := r.containersOf(ctx, pod)
	if err != nil {
		return nil, fmt.Errorf("failed to list the containers of pod %s: %w", identityOf(pod), withSentinel(err))
	}
	var running []lifecycle.Container
	for _, c := range containers {
		if c.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED {
			running = append(running, lifecycle.Container{Name: containerName(c), ID: c.GetId(), Began: timeOf(c.GetCreatedAt()).Time})
		}
	}
	return running, nil
}

// containersOf lists the containers of a pod in every state, as [Runtime.Running] finds them: by the
// kubelet's labels or, without any, by the pod's sandboxes.
func (r *Runtime) containersOf(ctx context.Context, pod *v1.Pod) ([]*runtimeapi.Container, error) {
	owner := identityOf(pod)
	labels := map[string]string{podUIDLabel: string(owner.uid)}
	if owner.uid == "" {
		labels = map[string]string{podNamespaceLabel: pod.Namespace, podNameLabel: pod.Name}
	}
	containers, err := r.listContainers(ctx, &runtimeapi.ContainerFilter{LabelSelector: labels})
	if err != nil || len(containers) > 0 {
		return containers, err
	}
	sandboxes, err := r.sandboxesOf(ctx, pod)
	for _, sandbox := range sandboxes {
		inSandbox, listErr := r.listContainers(ctx, &runtimeapi.ContainerFilter{PodSandboxId: sandbox.GetId()})
		containers, err = append(containers, inSandbox...), errors.Join(err, listErr)
	}
	return containers, err
}

// listContainers lists containers in every state. A nil filter matches all.
func (r *Runtime) listContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) (containers []*runtimeapi.Container, err error) {
	err = list(ctx, r, "StreamContainers", "ListContainers", &runtimeapi.ListContainersRequest{Filter: filter},
		func(part *runtimeapi.ListContainersResponse) {
			containers = append(containers, part.GetContainers()...)
		})
	return containers, err
}

// listSandboxes lists all sandboxes in every state.
func (r *Runtime) listSandboxes(ctx context.Context) (sandboxes []*runtimeapi.PodSandbox, err error) {
	err = list(ctx, r, "StreamPodSandboxes", "ListPodSandbox", &runtimeapi.ListPodSandboxRequest{},
		func(part *runtimeapi.ListPodSandboxResponse) { sandboxes = append(sandboxes, part.GetItems()...) })
	return sandboxes, err
}

// list reads a list from the runtime and passes each part of it to onPart. It calls streamMethod, which can return a list of
// any size (KEP-5825, CRI v0.37). If the runtime does not implement streamMethod, this list and all later ones call
// unaryMethod, which returns the whole list as one part of at most maxMessageBytes. Part is the response message of
// unaryMethod; those of streamMethod have the same fields. After an error, onPart has received only some of the parts.
func list[Part any](ctx context.Context, r *Runtime, streamMethod, unaryMethod string, request any, onPart func(*Part)) error {
	const service = "/runtime.v1.RuntimeService/"
	if !r.usesUnary.Load() {
		err := receive(ctx, r.conn, service+streamMethod, request, onPart)
		if status.Code(err) != codes.Unimplemented {
			return err
		}
		r.usesUnary.Store(true)
	}
	whole := new(Part)
	if err := r.conn.Invoke(ctx, service+unaryMethod, request, whole); err != nil {
		return err
	}
	onPart(whole)
	return nil
}

// receive calls a method that streams its response, and passes each message to onPart. It returns nil at the
// end of the stream.
func receive[Part any](ctx context.Context, conn *grpc.ClientConn, method string, request any, onPart func(*Part)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	if err == nil {
		err = errors.Join(stream.SendMsg(request), stream.CloseSend())
	}
	for err == nil {
		part := new(Part)
		if err = stream.RecvMsg(part); err == nil {
			onPart(part)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
