package podlist

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Pod is what a shutdown needs to know of a pod.
type Pod struct {
	Namespace, Name string
	// Class is the name of its priority class; Priority counts where HasPriority is
	// set.
	Class       string
	Priority    int32
	HasPriority bool
	// Static says that it comes from a file on its node, or shows one that does.
	Static bool
	// Grace is its terminationGracePeriodSeconds; 30 if it says nothing, as the API
	// server and the kubelet fill in.
	Grace int64
	// Hooks are the preStop hooks of its containers, and Sidecars those of its init
	// containers that are restarted always and so run until the end.
	Hooks    []Hook
	Sidecars []Sidecar
	// OwnerKind and OwnerName are of the object that would have to be changed to
	// change the pod; "" if it has none.
	OwnerKind, OwnerName string
}

// Sidecar is an init container that runs beside the others.
type Sidecar struct {
	Name  string
	Index int // among the init containers
}

// HookType is what a preStop hook does, as its field is named.
type HookType string

// The types of preStop hooks.
const (
	HookExec  HookType = "exec"
	HookHTTP  HookType = "httpGet"
	HookTCP   HookType = "tcpSocket"
	HookSleep HookType = "sleep"
)

// Hook is a preStop hook.
type Hook struct {
	Container string
	Index     int  // of the container among those of its kind
	Sidecar   bool // it is one of the init containers
	Type      HookType
	// Seconds is how long it sleeps: as it says, or for an exec hook that runs sleep
	// with a number, that number. Less than 0: not known.
	Seconds int64
}

// Object makes a pod with what is known of it, as much as a plan and a validation of
// its termination look at.
func (p *Pod) Object() *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		Spec:       v1.PodSpec{PriorityClassName: p.Class, TerminationGracePeriodSeconds: &p.Grace},
	}
	if p.HasPriority {
		pod.Spec.Priority = &p.Priority
	}
	if p.Static {
		pod.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "", configSource: "file"}
	}
	for _, sidecar := range p.Sidecars {
		c := at(&pod.Spec.InitContainers, sidecar.Index)
		c.Name, c.RestartPolicy = sidecar.Name, ptr.To(v1.ContainerRestartPolicyAlways)
	}
	for _, hook := range p.Hooks {
		c := at(containersOf(pod, hook), hook.Index)
		c.Name, c.Lifecycle = hook.Container, &v1.Lifecycle{PreStop: hook.handler()}
	}
	return pod
}

func containersOf(pod *v1.Pod, hook Hook) *[]v1.Container {
	if hook.Sidecar {
		return &pod.Spec.InitContainers
	}
	return &pod.Spec.Containers
}

// at gives the container of an index, and makes those before it.
func at(containers *[]v1.Container, index int) *v1.Container {
	for len(*containers) <= index {
		*containers = append(*containers, v1.Container{})
	}
	return &(*containers)[index]
}

func (h Hook) handler() *v1.LifecycleHandler {
	switch h.Type {
	case HookSleep:
		return &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: h.Seconds}}
	case HookHTTP:
		return &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{}}
	case HookTCP:
		return &v1.LifecycleHandler{TCPSocket: &v1.TCPSocketAction{}}
	default:
		return &v1.LifecycleHandler{Exec: &v1.ExecAction{}}
	}
}
