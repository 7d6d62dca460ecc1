package criruntime

import (
	"cmp"
	"context"
	"maps"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// foundPod is a pod in the runtime's lists.
type foundPod struct {
	identity   identity
	sandbox    *runtimeapi.PodSandbox // the ready one, or else the newest; nil: the runtime has none
	containers []*runtimeapi.Container
}

// findPods returns all pods in every state, sorted. It lists containers first, so that the list of sandboxes, which is newer, has
// the sandbox of each container that still exists.
func (r *Runtime) findPods(ctx context.Context) ([]*foundPod, error) {
	containers, err := r.listContainers(ctx, nil) // nil: no filter
	if err != nil {
		return nil, err
	}
	sandboxes, err := r.listSandboxes(ctx)
	if err != nil {
		return nil, err
	}
	pods := groupByPod(sandboxes, containers)
	return slices.SortedFunc(maps.Values(pods), func(a, b *foundPod) int { return a.identity.compare(b.identity) }), nil
}

// groupByPod returns the pods to which the sandboxes and containers belong, by the key of their identity.
func groupByPod(sandboxes []*runtimeapi.PodSandbox, containers []*runtimeapi.Container) map[identity]*foundPod {
	pods, ownerOfSandbox := map[identity]*foundPod{}, map[string]identity{}
	podOf := func(owner identity) *foundPod {
		if pods[owner.key()] == nil {
			pods[owner.key()] = &foundPod{identity: owner}
		}
		return pods[owner.key()]
	}
	for _, sandbox := range sandboxes {
		owner := sandboxIdentity(sandbox)
		ownerOfSandbox[sandbox.GetId()] = owner
		podOf(owner).addSandbox(sandbox)
	}
	for _, container := range containers {
		owner := containerIdentity(container)
		if sandboxOwner, found := ownerOfSandbox[container.GetPodSandboxId()]; found && owner.uid == "" {
			owner = sandboxOwner // no kubelet has created the container, so it has no labels
		}
		pod := podOf(owner)
		pod.containers = append(pod.containers, container)
	}
	return pods
}

// addSandbox makes candidate the pod's sandbox if it is better than the present one. A pod has several sandboxes after
// one was replaced. A ready sandbox is better than one that is not ready; if that decides nothing, the newer is better.
func (f *foundPod) addSandbox(candidate *runtimeapi.PodSandbox) {
	if f.sandbox == nil {
		f.sandbox = candidate
		return
	}
	byState := cmp.Compare(f.sandbox.GetState(), candidate.GetState()) // READY is 0 and NOTREADY is 1
	byAge := cmp.Compare(candidate.GetCreatedAt(), f.sandbox.GetCreatedAt())
	isBetter := cmp.Or(byState, byAge) > 0
	if isBetter {
		f.sandbox = candidate
	}
}

// isLive reports whether the pod has not ended: its sandbox is ready, or one of its containers may be running.
func (f *foundPod) isLive() bool {
	isReady := f.sandbox != nil && f.sandbox.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY
	return isReady || slices.ContainsFunc(f.containers, mayRun)
}

// mayRun reports whether a container is running or in an unknown state.
func mayRun(c *runtimeapi.Container) bool {
	return c.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING || c.GetState() == runtimeapi.ContainerState_CONTAINER_UNKNOWN
}

// newestOfEachName returns one container for each name, because a restarted container has several runs: the newest
// that may be running, or else the newest. The result is in the order of creation.
func newestOfEachName(containers []*runtimeapi.Container) []*runtimeapi.Container {
	byCreation := func(a, b *runtimeapi.Container) int {
		return cmp.Or(cmp.Compare(a.GetCreatedAt(), b.GetCreatedAt()), cmp.Compare(a.GetId(), b.GetId()))
	}
	isBetter := func(c, other *runtimeapi.Container) bool {
		if mayRun(c) != mayRun(other) {
			return mayRun(c)
		}
		return byCreation(c, other) > 0
	}
	byName := map[string]*runtimeapi.Container{}
	for _, c := range containers {
		name := containerName(c)
		if byName[name] == nil || isBetter(c, byName[name]) {
			byName[name] = c
		}
	}
	return slices.SortedFunc(maps.Values(byName), byCreation)
}
