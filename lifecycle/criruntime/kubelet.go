package criruntime

import (
	"cmp"
	"encoding/json"
	"maps"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
)

// The labels and annotations that a kubelet sets. They are not part of the Kubernetes API; a test compares
// them with each minor version. Containers have all four labels, sandboxes the first three. The
// annotations are those of containers.
const (
	podNameLabel       = "io.kubernetes.pod.name"
	podNamespaceLabel  = "io.kubernetes.pod.namespace"
	podUIDLabel        = "io.kubernetes.pod.uid"
	containerNameLabel = "io.kubernetes.container.name"

	terminationGraceAnnotation = "io.kubernetes.pod.terminationGracePeriod"
	deletionGraceAnnotation    = "io.kubernetes.pod.deletionGracePeriod"
	preStopAnnotation          = "io.kubernetes.container.preStopHandler"
	portsAnnotation            = "io.kubernetes.container.ports"
	restartCountAnnotation     = "io.kubernetes.container.restartCount"
	messagePathAnnotation      = "io.kubernetes.container.terminationMessagePath"
	messagePolicyAnnotation    = "io.kubernetes.container.terminationMessagePolicy"
)

// identity identifies the pod to which a sandbox or container belongs. Compare two with key or matches.
type identity struct {
	namespace, name string
	uid             types.UID
}

// identityOf returns the identity of a pod of the API. The runtime knows a static pod by the UID that the kubelet has given it. Its
// mirror pod at the API server has another UID, and the kubelet's in an annotation.
func identityOf(pod *v1.Pod) identity {
	uid := cmp.Or(types.UID(pod.Annotations[v1.MirrorPodAnnotationKey]), pod.UID)
	return identity{pod.Namespace, pod.Name, uid}
}

// key returns the part of an identity that is equal for the same pod: the UID or, without one, namespace
// and name.
func (i identity) key() identity {
	if i.uid != "" {
		return identity{uid: i.uid}
	}
	return i
}

// matches reports whether owner is the identity of this pod: it has the same UID or, if i has none, the same namespace and name.
func (i identity) matches(owner identity) bool {
	if i.uid == "" {
		return i.namespace == owner.namespace && i.name == owner.name
	}
	return i.uid == owner.uid
}

// compare orders identities by namespace, name and UID, so that pods are listed in a fixed order.
func (i identity) compare(other identity) int {
	return cmp.Or(cmp.Compare(i.namespace, other.namespace), cmp.Compare(i.name, other.name), cmp.Compare(i.uid, other.uid))
}

func (i identity) String() string { return i.namespace + "/" + i.name }

// sandboxIdentity returns the pod of a sandbox. It reads the metadata, which every client of CRI must set.
func sandboxIdentity(sandbox *runtimeapi.PodSandbox) identity {
	metadata := sandbox.GetMetadata()
	return identity{metadata.GetNamespace(), metadata.GetName(), types.UID(metadata.GetUid())}
}

// containerIdentity returns the pod of a container. It reads the labels, which only a kubelet sets;
// without them all its fields are "".
func containerIdentity(c *runtimeapi.Container) identity {
	labels := c.GetLabels()
	return identity{labels[podNamespaceLabel], labels[podNameLabel], types.UID(labels[podUIDLabel])}
}

// podLabels returns the labels of a pod: those of its sandbox, except those that the kubelet adds.
func podLabels(sandbox *runtimeapi.PodSandbox) map[string]string {
	labels := maps.Clone(sandbox.GetLabels())
	for _, name := range []string{podNameLabel, podNamespaceLabel, podUIDLabel} {
		delete(labels, name)
	}
	return labels
}

// containerName returns the container's name in its pod: the kubelet's label or, without it, the name in
// CRI's metadata.
func containerName(c *runtimeapi.Container) string {
	if name := c.GetLabels()[containerNameLabel]; name != "" {
		return name
	}
	return c.GetMetadata().GetName()
}

// restartCount returns how often the kubelet has restarted the container: its annotation or, without it,
// the attempt in CRI's metadata.
func restartCount(c *runtimeapi.Container) int32 {
	count, err := strconv.ParseInt(c.GetAnnotations()[restartCountAnnotation], 10, 32)
	if err != nil {
		return int32(c.GetMetadata().GetAttempt()) //nolint:gosec // The kubelet counts in an int32, too.
	}
	return int32(count)
}

// specOf returns as much of a container's spec as the runtime knows: the name, the image, and what the
// kubelet has written into annotations. An annotation that cannot be decoded is logged and counts as
// missing, as in the kubelet.
func specOf(logger klog.Logger, c *runtimeapi.Container) v1.Container {
	annotations := c.GetAnnotations()
	spec := v1.Container{
		Name:                     containerName(c),
		Image:                    c.GetImage().GetUserSpecifiedImage(),
		TerminationMessagePath:   annotations[messagePathAnnotation],
		TerminationMessagePolicy: v1.TerminationMessagePolicy(annotations[messagePolicyAnnotation]),
	}
	if spec.Image == "" {
		spec.Image = c.GetImage().GetImage()
	}
	logger = klog.LoggerWithValues(logger, "containerName", spec.Name, "containerID", c.GetId())
	spec.Ports = decoded[[]v1.ContainerPort](logger, annotations, portsAnnotation)
	if preStop := decoded[*v1.LifecycleHandler](logger, annotations, preStopAnnotation); preStop != nil {
		spec.Lifecycle = &v1.Lifecycle{PreStop: preStop}
	}
	return spec
}

// graceSeconds returns the grace period in an annotation of a container, or nil if it is missing or cannot be
// decoded.
func graceSeconds(logger klog.Logger, c *runtimeapi.Container, annotation string) *int64 {
	return decoded[*int64](klog.LoggerWithValues(logger, "containerID", c.GetId()), c.GetAnnotations(), annotation)
}

// decoded returns the value of the JSON annotation with this name, or the zero value if the annotation is
// missing or cannot be decoded. The latter is logged.
func decoded[T any](logger klog.Logger, annotations map[string]string, name string) T {
	var value, none T
	text, found := annotations[name]
	if !found {
		return none
	}
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		logger.Error(err, "Failed to decode an annotation of a container", "annotation", name)
		return none
	}
	return value
}
