package criruntime

import (
	"cmp"
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
)

// reader reads pods from the runtime.
type reader struct {
	client  runtimeapi.RuntimeServiceClient
	runtime string // its name
	hostIP  string // Options.HostIP
}

// foundPod is what the lists of the runtime have of a pod.
type foundPod struct {
	identity   identity
	sandbox    *runtimeapi.PodSandbox  // the ready one, else the newest; nil if it has gone
	containers []*runtimeapi.Container // all that may run, else the newest of each name, in the order of their creation
}

// isLive reports whether the pod has not ended.
func (f foundPod) isLive() bool {
	return f.sandbox != nil && f.sandbox.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY || slices.ContainsFunc(f.containers, mayRun)
}

// mayRun reports whether a container runs, as far as the runtime knows.
func mayRun(c *runtimeapi.Container) bool {
	return c.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING || c.GetState() == runtimeapi.ContainerState_CONTAINER_UNKNOWN
}

// list lists the pods of the runtime in every state. The containers are listed first: each
// then has its sandbox in the second list, unless both have been removed meanwhile.
func (r reader) list(ctx context.Context) ([]foundPod, error) {
	containers, err := r.client.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return nil, err
	}
	sandboxes, err := r.client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return nil, err
	}
	pods, bySandbox := map[identity]*foundPod{}, map[string]identity{}
	pod := func(i identity) *foundPod {
		if pods[i] == nil {
			pods[i] = &foundPod{identity: i}
		}
		return pods[i]
	}
	for _, sandbox := range sandboxes.GetItems() {
		i := sandboxIdentity(sandbox)
		bySandbox[sandbox.GetId()] = i
		pod(i).addSandbox(sandbox)
	}
	for _, container := range containers.GetContainers() {
		i, found := bySandbox[container.GetPodSandboxId()]
		if !found {
			i = labelled(container.GetLabels())
		}
		pod(i).addContainer(container)
	}
	return sorted(pods), nil
}

// find returns a pod in whatever state, nil if the runtime does not have it.
func (r reader) find(ctx context.Context, of identity) (*v1.Pod, error) {
	found, err := r.list(ctx)
	if i := slices.IndexFunc(found, func(f foundPod) bool { return f.identity == of }); i >= 0 {
		return r.read(ctx, found[i])
	}
	return nil, err
}

// sorted returns pods by namespace, name and UID, and their containers by their creation.
func sorted(pods map[identity]*foundPod) []foundPod {
	list := make([]foundPod, 0, len(pods))
	for _, f := range pods {
		slices.SortFunc(f.containers, func(a, b *runtimeapi.Container) int {
			return cmp.Or(cmp.Compare(a.GetCreatedAt(), b.GetCreatedAt()), cmp.Compare(a.GetId(), b.GetId()))
		})
		list = append(list, *f)
	}
	slices.SortFunc(list, func(a, b foundPod) int {
		return cmp.Or(cmp.Compare(a.identity.namespace, b.identity.namespace), cmp.Compare(a.identity.name, b.identity.name), cmp.Compare(a.identity.uid, b.identity.uid))
	})
	return list
}

// addSandbox takes a sandbox if the pod has none that counts more.
func (f *foundPod) addSandbox(s *runtimeapi.PodSandbox) {
	// READY is 0 and NOTREADY is 1.
	if f.sandbox == nil || cmp.Or(cmp.Compare(f.sandbox.GetState(), s.GetState()), cmp.Compare(s.GetCreatedAt(), f.sandbox.GetCreatedAt())) > 0 {
		f.sandbox = s
	}
}

// addContainer takes a container, unless another one of the same name counts more. All that may run
// count: a runtime has two of one name where a kubelet has lost one, and both have to be stopped.
func (f *foundPod) addContainer(c *runtimeapi.Container) {
	countsLess := func(a, b *runtimeapi.Container) bool {
		return containerName(a) == containerName(b) && !mayRun(a) && (mayRun(b) || a.GetCreatedAt() <= b.GetCreatedAt())
	}
	if slices.ContainsFunc(f.containers, func(other *runtimeapi.Container) bool { return countsLess(c, other) }) {
		return
	}
	f.containers = append(slices.DeleteFunc(f.containers, func(other *runtimeapi.Container) bool { return countsLess(other, c) }), c)
}

// read returns a pod as the kubelet's marks and the runtime have it. Its error says that the
// runtime has not answered. What the runtime refuses to tell is left out: a pod whose network
// cannot be read has to be stopped all the same.
func (r reader) read(ctx context.Context, f foundPod) (*v1.Pod, error) {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "pod", klog.KRef(f.identity.namespace, f.identity.name))
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: f.identity.name, Namespace: f.identity.namespace, UID: f.identity.uid}}
	pod.Status.Phase, pod.Status.HostIP = v1.PodPending, r.hostIP
	if f.sandbox != nil {
		pod.Labels, pod.Annotations = podLabels(f.sandbox), f.sandbox.GetAnnotations()
		pod.CreationTimestamp = timeOf(f.sandbox.GetCreatedAt())
		if err := r.readNetwork(ctx, f.sandbox.GetId(), pod); err != nil {
			return nil, err
		}
	}
	for _, c := range f.containers {
		status, err := r.statusOf(ctx, c)
		switch {
		case isNotFound(err):
			continue // it has been removed meanwhile
		case err != nil:
			return nil, err
		}
		pod.Spec.Containers = append(slices.DeleteFunc(pod.Spec.Containers, func(older v1.Container) bool { return older.Name == status.Name }), specOf(logger, c))
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
func (r reader) readNetwork(ctx context.Context, sandbox string, pod *v1.Pod) error {
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
		addresses = []string{r.hostIP}
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

// statusOf returns the status of a container that is in a list. Only one that has exited is asked
// for how. The error is that of gRPC, and says that the runtime has not answered, or that it does not know
// the container.
func (r reader) statusOf(ctx context.Context, c *runtimeapi.Container) (v1.ContainerStatus, error) {
	status := v1.ContainerStatus{
		Name: containerName(c), Image: c.GetImage().GetImage(), ImageID: c.GetImageRef(),
		ContainerID: r.runtime + "://" + c.GetId(), RestartCount: restartCount(c),
	}
	if c.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED {
		setState(&status, c.GetState(), c.GetCreatedAt())
		return status, nil
	}
	setState(&status, c.GetState(), 0)
	answer, err := r.client.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: c.GetId()})
	if err != nil && (isAway(err) || isNotFound(err)) {
		return v1.ContainerStatus{}, err
	}
	if err == nil {
		setEnd(&status, answer.GetStatus())
	}
	return status, nil
}
