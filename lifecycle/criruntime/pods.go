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

// podsTimeout bounds the reading of all pods.
const podsTimeout = 30 * time.Second

// Pods returns the pods of the runtime that have not ended: those with a ready sandbox or a
// container that runs. They are new ones each time, sorted by namespace, name and UID.
//
// A pod that a kubelet has made has its name, namespace, UID, labels and annotations, its
// grace period, whether it is in the node's network, and of each container the name, the image, the preStop hook,
// the ports and what its status says: state, restart count and ID. Of several runs of a
// container it has the one that has not ended, else the newest. A kubelet does not tell its runtime which
// containers are init containers or sidecars, so that all are in spec.containers; nor the pod's priority,
// restartPolicy, probes and stop signals. Who knows them sets them, or returns the pod of an informer in
// the place of this one: [Runtime.Running] knows both by their UID.
//
// A container that runs has the time of its creation as startedAt. What no kubelet has made is named by
// the metadata that CRI requires, and has no grace period and no hooks.
//
// While the runtime does not answer, and after 30 s, Pods fails; a pod is never missing for
// that reason. Pods fits the option of the same name of package shutdown.
func (r *Runtime) Pods(ctx context.Context) ([]*v1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, podsTimeout)
	defer cancel()
	found, err := r.findPods(ctx)
	if err != nil {
		return nil, fmt.Errorf("failed to list the pods of the container runtime: %w", known(err))
	}
	pods := make([]*v1.Pod, 0, len(found))
	for _, f := range found {
		if !f.isLive() {
			continue
		}
		pod, err := r.read(ctx, f)
		if err != nil {
			return nil, fmt.Errorf("failed to read pod %s from the container runtime: %w", f.identity, known(err))
		}
		pods = append(pods, pod)
	}
	return pods, nil
}

// PodStatus returns the status of a pod with the statuses of the containers that the runtime has, as
// they are now: exit codes, too. It returns nil if the runtime has none of them, or does not answer. It
// fits the option Status of package podkiller.
func (r *Runtime) PodStatus(ctx context.Context, pod *v1.Pod) *v1.PodStatus {
	ctx, cancel := context.WithTimeout(ctx, podsTimeout)
	defer cancel()
	status := pod.Status.DeepCopy()
	containers, err := r.containersOf(ctx, pod)
	for _, c := range newest(containers) {
		current, statusErr := r.statusOf(ctx, c)
		if !isNotFound(statusErr) {
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

// StopPodSandbox stops the sandboxes of a pod, which releases its network; they are not
// removed. It is for a pod whose containers have ended: a runtime kills those that still
// run without a grace period. A pod that the runtime does not know is no error.
func (r *Runtime) StopPodSandbox(ctx context.Context, pod *v1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, stopMargin)
	defer cancel()
	sandboxes, err := r.sandboxesOf(ctx, pod)
	if err != nil {
		return fmt.Errorf("failed to list the sandboxes of pod %s: %w", identityOf(pod), known(err))
	}
	var errs []error
	for _, sandbox := range sandboxes {
		_, err := r.client.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: sandbox.GetId()})
		if err != nil && !isNotFound(err) {
			errs = append(errs, fmt.Errorf("failed to stop sandbox %q of pod %s: %w", sandbox.GetId(), identityOf(pod), known(err)))
		}
	}
	return errors.Join(errs...)
}

// foundPod is what the lists of the runtime have of a pod.
type foundPod struct {
	identity   identity
	sandbox    *runtimeapi.PodSandbox // the ready one, else the newest; nil if it has gone
	containers []*runtimeapi.Container
}

// isLive reports whether the pod has not ended.
func (f *foundPod) isLive() bool {
	return f.sandbox != nil && f.sandbox.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY || slices.ContainsFunc(f.containers, mayRun)
}

// mayRun reports whether a container runs, as far as the runtime knows.
func mayRun(c *runtimeapi.Container) bool {
	return c.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING || c.GetState() == runtimeapi.ContainerState_CONTAINER_UNKNOWN
}

// findPods lists the pods of the runtime in every state, sorted. The containers are listed first: each
// then has its sandbox in the second list, unless both have been removed meanwhile.
func (r *Runtime) findPods(ctx context.Context) ([]*foundPod, error) {
	containers, err := r.listContainers(ctx, nil)
	if err != nil {
		return nil, err
	}
	sandboxes, err := r.listSandboxes(ctx)
	if err != nil {
		return nil, err
	}
	pods, bySandbox := map[identity]*foundPod{}, map[string]identity{}
	pod := func(i identity) *foundPod {
		if pods[i.key()] == nil {
			pods[i.key()] = &foundPod{identity: i}
		}
		return pods[i.key()]
	}
	for _, sandbox := range sandboxes {
		i := sandboxIdentity(sandbox)
		bySandbox[sandbox.GetId()] = i
		pod(i).addSandbox(sandbox)
	}
	for _, container := range containers {
		i := containerIdentity(container)
		if of, found := bySandbox[container.GetPodSandboxId()]; found && i.uid == "" {
			i = of
		}
		found := pod(i)
		found.containers = append(found.containers, container)
	}
	return slices.SortedFunc(maps.Values(pods), func(a, b *foundPod) int { return a.identity.compare(b.identity) }), nil
}

// addSandbox takes a sandbox if the pod has none that counts more.
func (f *foundPod) addSandbox(s *runtimeapi.PodSandbox) {
	// READY is 0 and NOTREADY is 1.
	if f.sandbox == nil || cmp.Or(cmp.Compare(f.sandbox.GetState(), s.GetState()), cmp.Compare(s.GetCreatedAt(), f.sandbox.GetCreatedAt())) > 0 {
		f.sandbox = s
	}
}

// newest returns of each name the newest container that may run, else the newest one, in the order of
// their creation.
func newest(containers []*runtimeapi.Container) []*runtimeapi.Container {
	byCreation := func(a, b *runtimeapi.Container) int {
		return cmp.Or(cmp.Compare(a.GetCreatedAt(), b.GetCreatedAt()), cmp.Compare(a.GetId(), b.GetId()))
	}
	byName := map[string]*runtimeapi.Container{}
	for _, c := range containers {
		other := byName[containerName(c)]
		if other == nil || mayRun(c) && !mayRun(other) || mayRun(c) == mayRun(other) && byCreation(c, other) > 0 {
			byName[containerName(c)] = c
		}
	}
	return slices.SortedFunc(maps.Values(byName), byCreation)
}

// read returns a pod as the kubelet's marks and the runtime have it. Its error says that the
// runtime has not answered. What the runtime refuses to tell is left out: a pod whose network
// cannot be read has to be stopped all the same.
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
			continue // it has been removed meanwhile
		case err != nil:
			return nil, err
		}
		pod.Spec.Containers = append(pod.Spec.Containers, specOf(logger, c))
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
		if status.State.Waiting == nil {
			pod.Status.Phase = v1.PodRunning
		}
		// The newest container tells the last of what the kubelet knew.
		if grace := seconds(logger, c, terminationGraceAnnotation); grace != nil {
			pod.Spec.TerminationGracePeriodSeconds = grace
		}
		if grace := seconds(logger, c, deletionGraceAnnotation); grace != nil {
			pod.DeletionGracePeriodSeconds = grace
		}
	}
	return pod, nil
}

// readNetwork sets what the status of its sandbox tells of a pod.
func (r *Runtime) readNetwork(ctx context.Context, sandbox string, pod *v1.Pod) error {
	response, err := r.client.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: sandbox})
	if isAway(err) {
		return err
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to read the network of a pod, its httpGet hooks fail", "pod", klog.KObj(pod))
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
	if addresses[0] == "" {
		return nil
	}
	pod.Status.PodIP = addresses[0]
	for _, address := range addresses {
		pod.Status.PodIPs = append(pod.Status.PodIPs, v1.PodIP{IP: address})
	}
	return nil
}
