package podlist

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Pod has the fields of a pod that decide on its shutdown.
type Pod struct {
	Namespace, Name string
	// Class is the name of the priority class. Priority is only valid with HasPriority.
	Class       string
	Priority    int32
	HasPriority bool
	// Static says that the pod is a static pod, or the mirror pod of one. Mirror says that it is a
	// mirror pod, whose priority is the API server's and not the kubelet's.
	Static, Mirror bool
	// Grace is the terminationGracePeriodSeconds; 30, the API server's default, if it is not
	// set.
	Grace int64
	// Hooks are the preStop hooks of all containers and sidecars.
	Hooks    []Hook
	Sidecars []Sidecar
	// OwnerKind and OwnerName name the object whose pod template the pod is made from; "" if
	// the pod has no owner. For a ReplicaSet of a Deployment it is the Deployment.
	OwnerKind, OwnerName string
}

// Sidecar is an init container with restartPolicy Always, which runs until the pod ends.
type Sidecar struct {
	Name  string
	Index int // among the init containers
}

// HookType is the name of the field that a preStop hook sets.
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
	Index     int  // of the container, among the containers or the init containers
	Sidecar   bool // the container is an init container
	Type      HookType
	// Seconds is how long the hook sleeps: of a sleep hook, and of an exec hook whose command
	// runs sleep with a number. Less than 0: not known.
	Seconds int64
}

// Object returns a v1.Pod with the known fields. A plan and the warnings of package validation
// are the same for it as for the pod that was read.
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
		c := containerAt(&pod.Spec.InitContainers, sidecar.Index)
		c.Name, c.RestartPolicy = sidecar.Name, ptr.To(v1.ContainerRestartPolicyAlways)
	}
	for _, hook := range p.Hooks {
		c := containerAt(containersOf(pod, hook), hook.Index)
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

// containerAt returns the container with an index. It adds empty containers up to the index.
func containerAt(containers *[]v1.Container, index int) *v1.Container {
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
