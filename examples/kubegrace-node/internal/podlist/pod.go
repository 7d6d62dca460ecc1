package podlist

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// configSource is the annotation with the source from which a kubelet has read a pod
// (ConfigSourceAnnotationKey of the kubelet).
const configSource = "kubernetes.io/config.source"

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
	// Containers and InitContainers have names, restart policies and the preStop hooks that a shutdown
	// runs. Of the init containers only the sidecars have any.
	Containers, InitContainers []v1.Container
	// OwnerKind and OwnerName name the object whose pod template the pod is made from; "" if
	// the pod has no owner. For a ReplicaSet of a Deployment it is the Deployment.
	OwnerKind, OwnerName string
}

// Hook is a preStop hook.
type Hook struct {
	Container string
	// Type is the name of the field that the hook sets: exec, httpGet, tcpSocket or sleep.
	Type string
	// Seconds is how long the hook sleeps: of a sleep hook, and of an exec hook whose command
	// runs sleep with a number. Less than 0: not known.
	Seconds int64
}

// podOf returns the fields of a pod, with the API server's defaults.
func podOf(o *object) Pod {
	meta, spec := &o.Metadata, &o.Spec
	_, mirror := meta.Annotations[v1.MirrorPodAnnotationKey]
	p := Pod{
		Namespace: cmp.Or(meta.Namespace, metav1.NamespaceDefault), Name: meta.Name,
		Class: spec.Class, Priority: ptr.Deref(spec.Priority, 0), HasPriority: spec.Priority != nil,
		Static: mirror || cmp.Or(meta.Annotations[configSource], "api") != "api", Mirror: mirror,
		Grace: ptr.Deref(spec.Grace, v1.DefaultTerminationGracePeriodSeconds),
	}
	for _, c := range spec.Containers {
		p.Containers = append(p.Containers, shutdownOf(c))
	}
	for _, c := range spec.InitContainers {
		if ptr.Deref(c.RestartPolicy, "") != v1.ContainerRestartPolicyAlways {
			c = container{Name: c.Name} // it has ended when a shutdown begins
		}
		p.InitContainers = append(p.InitContainers, shutdownOf(c))
	}
	for i, owner := range meta.Owners {
		if i == 0 || ptr.Deref(owner.Controller, false) {
			p.OwnerKind, p.OwnerName = owner.Kind, owner.Name
		}
	}
	hash := meta.Labels["pod-template-hash"]
	if name, ok := strings.CutSuffix(p.OwnerName, "-"+hash); ok && p.OwnerKind == "ReplicaSet" && hash != "" {
		p.OwnerKind, p.OwnerName = "Deployment", name
	}
	return p
}

// shutdownOf returns what decides on the shutdown of a container.
func shutdownOf(c container) v1.Container {
	short := v1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy}
	if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
		short.Lifecycle = &v1.Lifecycle{PreStop: c.Lifecycle.PreStop}
	}
	return short
}

// Object returns a v1.Pod with the known fields. A plan and the warnings of package validation
// are the same for it as for the pod that was read.
func (p *Pod) Object() *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		Spec: v1.PodSpec{
			PriorityClassName: p.Class, TerminationGracePeriodSeconds: &p.Grace,
			Containers: p.Containers, InitContainers: p.InitContainers,
		},
	}
	if p.HasPriority {
		pod.Spec.Priority = &p.Priority
	}
	if p.Static {
		pod.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "", configSource: "file"}
	}
	return pod
}

// HooksOf returns the preStop hooks of all containers and sidecars.
func HooksOf(pod *v1.Pod) (hooks []Hook) {
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if c.Lifecycle == nil || c.Lifecycle.PreStop == nil {
			continue
		}
		switch hook := c.Lifecycle.PreStop; {
		case hook.Exec != nil:
			hooks = append(hooks, Hook{c.Name, "exec", sleepSeconds(hook.Exec.Command)})
		case hook.HTTPGet != nil:
			hooks = append(hooks, Hook{c.Name, "httpGet", -1})
		case hook.TCPSocket != nil:
			hooks = append(hooks, Hook{c.Name, "tcpSocket", -1})
		case hook.Sleep != nil:
			hooks = append(hooks, Hook{c.Name, "sleep", hook.Sleep.Seconds})
		}
	}
	return hooks
}

// sleepSeconds returns for how long a command sleeps: the number after the first word sleep
// that has one, also within the argument of a shell. It is less than 0 if there is none.
func sleepSeconds(command []string) int64 {
	words := strings.Fields(strings.Join(command, " "))
	for i := range words {
		if name := words[i]; name != "sleep" && !strings.HasSuffix(name, "/sleep") {
			continue
		}
		if i+1 < len(words) {
			number := strings.TrimSuffix(strings.TrimRight(words[i+1], ";&"), "s")
			if seconds, err := strconv.ParseInt(number, 10, 64); err == nil && seconds >= 0 {
				return seconds
			}
		}
	}
	return -1
}
