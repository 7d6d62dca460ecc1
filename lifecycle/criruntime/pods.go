package criruntime

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
)

// podsTimeout is how long a call of Pods or PodStatus waits for the runtime, with all its requests.
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
		pod, err := r.readPod(ctx, f)
		if err != nil {
			return nil, fmt.Errorf("failed to read pod %s from the container runtime: %w", f.identity, withSentinel(err))
		}
		pods = append(pods, pod)
	}
	return pods, nil
}

// readPod builds a pod from the runtime's data. It returns an error only if the runtime does not answer. If the runtime answers
// a request with an error, the pod lacks what was requested, such as its IPs; an exited container then has the exit code 137.
// Such a pod is returned nevertheless, because a shutdown must stop it too.
func (r *Runtime) readPod(ctx context.Context, f *foundPod) (*v1.Pod, error) {
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
	for _, c := range newestOfEachName(f.containers) {
		status, err := r.statusOf(ctx, c)
		switch {
		case err == nil:
			addContainer(logger, pod, c, status)
		case !isNotFound(err): // no answer: statusOf returns no other error
			return nil, err
		}
	}
	return pod, nil
}

// addContainer adds a container to a pod. Each container has the pod's grace periods at the time of its creation. The last one
// wins, because it is the newest.
func addContainer(logger klog.Logger, pod *v1.Pod, c *runtimeapi.Container, status v1.ContainerStatus) {
	pod.Spec.Containers = append(pod.Spec.Containers, specOf(logger, c))
	pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	if status.State.Waiting == nil {
		pod.Status.Phase = v1.PodRunning
	}
	if grace := graceSeconds(logger, c, terminationGraceAnnotation); grace != nil {
		pod.Spec.TerminationGracePeriodSeconds = grace
	}
	if grace := graceSeconds(logger, c, deletionGraceAnnotation); grace != nil {
		pod.DeletionGracePeriodSeconds = grace
	}
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
	mainIP := network.GetIp()
	if pod.Spec.HostNetwork {
		mainIP = r.options.HostIP
	}
	if mainIP != "" { // else the pod has no IP yet, or the host's IP is not known
		setIPs(&pod.Status, mainIP, network.GetAdditionalIps())
	}
	return nil
}

// setIPs sets a pod's IPs, the main one first.
func setIPs(status *v1.PodStatus, mainIP string, additional []*runtimeapi.PodIP) {
	status.PodIP, status.PodIPs = mainIP, []v1.PodIP{{IP: mainIP}}
	for _, ip := range additional {
		status.PodIPs = append(status.PodIPs, v1.PodIP{IP: ip.GetIp()})
	}
}
