package podlist

import (
	"cmp"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/internal/staticpod"
)

// object has the fields that are read of a pod, a list or a priority class. Decoding a whole v1.Pod takes
// three times as long.
type object struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name        string                  `json:"name"`
		Namespace   string                  `json:"namespace"`
		Annotations map[string]string       `json:"annotations"`
		Labels      map[string]string       `json:"labels"`
		Owners      []metav1.OwnerReference `json:"ownerReferences"`
	} `json:"metadata"`
	Spec struct {
		NodeName       string      `json:"nodeName"`
		Class          string      `json:"priorityClassName"`
		Priority       *int32      `json:"priority"`
		Grace          *int64      `json:"terminationGracePeriodSeconds"`
		Containers     []container `json:"containers"`
		InitContainers []container `json:"initContainers"`
	} `json:"spec"`
	Status struct {
		Phase v1.PodPhase `json:"phase"`
	} `json:"status"`
	Items []object `json:"items"` // of a list
	Value int32    `json:"value"` // of a priority class
}

// container has the fields that are read of a container.
type container struct {
	Name          string                     `json:"name"`
	RestartPolicy *v1.ContainerRestartPolicy `json:"restartPolicy"`
	Lifecycle     *v1.Lifecycle              `json:"lifecycle"`
}

// pod returns a v1.Pod with the fields that matter for a shutdown and with the API server's defaults. It keeps
// the label and the annotations that tell to which workload the pod belongs and whether it is static. The plan
// and the warnings of package validation are the same for it as for the whole pod.
func (o *object) pod() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cmp.Or(o.Metadata.Namespace, metav1.NamespaceDefault), Name: o.Metadata.Name, OwnerReferences: o.Metadata.Owners,
			Labels:      only(o.Metadata.Labels, "pod-template-hash"),
			Annotations: only(o.Metadata.Annotations, v1.MirrorPodAnnotationKey, staticpod.SourceAnnotation),
		},
		Spec: v1.PodSpec{
			PriorityClassName: o.Spec.Class, Priority: o.Spec.Priority,
			TerminationGracePeriodSeconds: ptr.To(ptr.Deref(o.Spec.Grace, v1.DefaultTerminationGracePeriodSeconds)),
			Containers:                    containers(o.Spec.Containers), InitContainers: containers(o.Spec.InitContainers),
		},
	}
}

// only returns the entries of a map that have one of the keys. It returns nil if there are none.
func only(all map[string]string, keys ...string) (kept map[string]string) {
	for _, key := range keys {
		if value, found := all[key]; found {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}

// containers returns containers as a v1.Pod has them.
func containers(read []container) (all []v1.Container) {
	for _, c := range read {
		all = append(all, v1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy, Lifecycle: c.Lifecycle})
	}
	return all
}
