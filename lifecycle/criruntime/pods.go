package criruntime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
)

// podsTimeout bounds Pods and PodStatus.
const podsTimeout = 30 * time.Second

// Pods returns the pods that have not ended: those with a ready sandbox or a running container, sorted by
// namespace, name and UID. The caller may modify them. Pods fits ListPods of shutdown.Options.
//
// A kubelet's pod has its name, namespace, UID, labels, annotations, grace period and host network. Each of
// its containers has its name, image, preStop hook, ports, state, restart count and ID. If a container has
// several runs, Pods uses the running one, or else the newest. A running container's startedAt is its
// creation time.
//
// A kubelet does not tell its runtime which containers are init containers or sidecars, so all are in
// spec.containers. Priority, restartPolicy, probes and stop signals are missing too. Callers that know
// them may set them, or substitute an informer's pod: [Runtime.Running] finds both by UID.
//
// A pod that no kubelet has created has the name in CRI's metadata, and neither a grace period nor hooks.
//
// If the runtime does not answer within 30 s, Pods returns an error, never an incomplete list.
func (r *Runtime) Pods(ctx context.Context) ([]*v1.Pod, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, podsTimeout)
	defer cancel()
	found, err := r.findPods(ctx)
	if err != nil {
		return nil, fmt.Errorf("failed to list the pods of the container runtime: %w", withSentinel(err))
	}
	pods := make([]*v1.Pod, 0, len(found))
	for _, f := range found {
		if !f.isLive() {
			continue
		}
		pod, err := r.read(ctx, f)
		if err != nil {
			return nil, fmt.Errorf("failed to read pod %s from the container runtime: %w", f.identity, withSentinel(err))
		}
		pods = append(pods, pod)
	}
	return pods, nil
}

// PodStatus returns the pod's status with the current container statuses, including exit codes. An exit code
// that the runtime cannot tell is 137, ContainerStatusUnknown, as in the kubelet. PodStatus returns nil if the
// runtime has no container of the pod or does not answer within 30 s. It fits Status of podkiller.Options.
func (r *Runtime) PodStatus(ctx context.Context, pod *v1.Pod) *v1.PodStatus {
	if err := r.check(pod); err != nil {
		klog.FromContext(ctx).Error(err, "PodStatus had no effect")
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, podsTimeout)
	defer cancel()
	status := pod.Status.DeepCopy()
	containers, err := r.containersOf(ctx, pod)
	for _, c := range newest(containers) {
		current, statusErr := r.statusOf(ctx, c)
		if !isNotFound(statusErr) { // a container that was removed since the list is no failure
			err = errors.Join(err, statusErr)
		}
		if statusErr == nil {
			set(statusesWith(&pod.Spec, status, current.Name), current)
		}
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to read the status of a pod from the container runtime", "pod", klog.KObj(pod))
	}
	if err != nil || len(containers) == 0 {
		return nil
	}
	return status
}

// StopPodSandbox stops the sandboxes of a pod, which releases its network, and does not remove them. Call it
// when the pod's containers have ended: a runtime kills running ones without a grace period. An unknown
// pod is no error. A runtime that has not answered after 2 min is.
func (r *Runtime) StopPodSandbox(ctx context.Context, pod *v1.Pod) error {
	if err := r.check(pod); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stopMargin)
	defer cancel()
	sandboxes, err := r.sandboxesOf(ctx, pod)
	if err != nil {
		return fmt.Errorf("failed to list the sandboxes of pod %s: %w", identityOf(pod), withSentinel(err))
	}
	var errs []error
	for _, sandbox := range sandboxes {
		_, err := r.client.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: sandbox.GetId()})
		if err != nil && !isNotFound(err) {
			errs = append(errs, fmt.Errorf("failed to stop sandbox %q of pod %s: %w", sandbox.GetId(), identityOf(pod), withSentinel(err)))
		}
	}
	return errors.Join(errs...)
}

// foundPod is a pod in the runtime's lists.
type foundPod struct {
	identity   identity
	sandbox    *runtimeapi.PodSandbox // the ready one, or else the newest; nil: removed
	containers []*runtimeapi.Container
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

// findPods returns all pods in every state, sorted. It lists containers first, so that the list of sandboxes
// has the sandbox of each container that still exists.
func (r *Runtime) findPods(ctx context.Context) ([]*foundPod, error) {
	containers, err := r.listContainers(ctx, nil)
	if err != nil {
		return nil, err
	}
	sandboxes, err := r.listSandboxes(ctx)
	if err != nil {
		return nil, err
	}
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
	return slices.SortedFunc(maps.Values(pods), func(a, b *foundPod) int { return a.identity.compare(b.identity) }), nil
}

// addSandbox makes other the pod's sandbox if other is better than the one so far. A pod has several after its
// sandbox was replaced: a ready one is better than one that is not, and of two equal ones the newer is better.
func (f *foundPod) addSandbox(other *runtimeapi.PodSandbox) {
	if f.sandbox == nil {
		f.sandbox = other
		return
	}
	byState := cmp.Compare(f.sandbox.GetState(), other.GetState()) // READY is 0 and NOTREADY is 1
	byAge := cmp.Compare(other.GetCreatedAt(), f.sandbox.GetCreatedAt())
	if isBetter := cmp.Or(byState, byAge) > 0; isBetter {
		f.sandbox = other
	}
}

// newest returns one container for each name, because a restarted container has several runs: the newest
// that may be running, or else the newest. They are in the order of their creation.
func newest(containers []*runtimeapi.Container) []*runtimeapi.Container {
	byCreation := func(a, b *runtimeapi.Container) int {
		return cmp.Or(cmp.Compare(a.GetCreatedAt(), b.GetCreatedAt()), cmp.Compare(a.GetId(), b.GetId()))
	}
	byName := map[string]*runtimeapi.Container{}
	for _, c := range containers {
		name := containerName(c)
		switch other := byName[name]; {
		case other == nil, mayRun(c) && !mayRun(other):
			byName[name] = c
		case mayRun(c) == mayRun(other) && byCreation(c, other) > 0:
			byName[name] = c
		}
	}
	return slices.SortedFunc(maps.Values(byName), byCreation)
}

// read builds a pod from the runtime's data. It returns an error if the runtime does not answer. If the
// runtime answers with an error, only that part of the pod is missing or unknown: a pod whose network is
// unknown must be stopped too.
func (r *Runtime) read(ctx context.Context, f *foundPod) (*v1.Pod, error) {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "pod", klog.KRef(f.identity.namespace, f.identity.name))
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: f.identity.name, Namespace: f.identity.namespace, UID: f.identity.uid}}
	pod.Status.Phase, pod.Status.HostIP = v1.PodPending, r.options.HostIP
	if f.sandbox != nil {
		pod.Labels, pod.Annotations = podLabels(f.sandbox), f.sandbox.GetAnnotations()
		pod.CreationTimestamp = timeOf(f.sandbox.GetCreatedAt())
		if err := r.readNetwork(ctx, f.sandbox.GetId(), pod); err != nil {
			return nil, err
		}
	}
	for _, c := range newest(f.containers) {
		status, err := r.statusOf(ctx, c)
		switch {
		case isNotFound(err):
			continue // removed since the list
		case err != nil:
			return nil, err
		}
		pod.Spec.Containers = append(pod.Spec.Containers, specOf(logger, c))
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
		if status.State.Waiting == nil {
			pod.Status.Phase = v1.PodRunning
		}
		// Each container has the grace periods at the time of its creation. The last one wins, because it
		// is the newest.
		if grace := seconds(logger, c, terminationGraceAnnotation); grace != nil {
			pod.Spec.TerminationGracePeriodSeconds = grace
		}
		if grace := seconds(logger, c, deletionGraceAnnotation); grace != nil {
			pod.DeletionGracePeriodSeconds = grace
		}
	}
	return pod, nil
}

// readNetwork sets the pod's IPs and host namespaces from the status of its sandbox. It returns an error
// only if the runtime does not answer.
func (r *Runtime) readNetwork(ctx context.Context, sandbox string, pod *v1.Pod) error {
	response, err := r.client.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: sandbox})
	if isUnanswered(err) {
		return err
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to read the network of a pod, its httpGet hooks will fail", "pod", klog.KObj(pod))
		return nil
	}
	options := response.GetStatus().GetLinux().GetNamespaces().GetOptions()
	pod.Spec.HostNetwork = options.GetNetwork() == runtimeapi.NamespaceMode_NODE
	pod.Spec.HostPID = options.GetPid() == runtimeapi.NamespaceMode_NODE
	network := response.GetStatus().GetNetwork()
	addresses := []string{network.GetIp()}
	if pod.Spec.HostNetwork {
		addresses = []string{r.options.HostIP}
	}
	for _, more := range network.GetAdditionalIps() {
		addresses = append(addresses, more.GetIp())
	}
	if addresses[0] == "" { // it has none yet, or the host's IP is not known
		return nil
	}
	pod.Status.PodIP = addresses[0]
	for _, address := range addresses {
		pod.Status.PodIPs = append(pod.Status.PodIPs, v1.PodIP{IP: address})
	}
	return nil
}
