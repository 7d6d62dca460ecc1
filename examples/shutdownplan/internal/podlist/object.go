package podlist

import (
	"cmp"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// configSource is the annotation that says where a kubelet has a pod from (the
// kubelet's ConfigSourceAnnotationKey).
const configSource = "kubernetes.io/config.source"

// The kinds of the objects that count here.
const (
	kindPod           = "Pod"
	kindPriorityClass = "PriorityClass"
)

// object is an object of a list, as far as it is read.
type object struct {
	kind        string
	node, phase string
	value       int32 // of a priority class
	list        bool  // it has items and is none itself
	grace       bool  // the pod says its grace period
	pod         Pod
	owner       ownerReference
	hash        string // the label pod-template-hash
}

type ownerReference struct{ kind, name string }

// reader reads objects into a cluster.
type reader struct {
	values
	cluster *Cluster
	static  bool // pods are static ones
}

// object reads an object, or a list of them. The fields come in any order. An item
// of a list that the API server itself has written does not say its kind.
func (r reader) object(kind string) error {
	o := object{kind: kind}
	err := r.values.object(func(name []byte) (bool, error) {
		switch string(name) {
		case "kind":
			return true, r.shared(&o.kind)
		case "items":
			o.list = true
			return true, r.array(func(int) error { return r.object(kindPod) })
		case "metadata":
			return true, r.metadata(&o)
		case "spec":
			return o.mayBePod(), r.spec(&o)
		case "status":
			return o.mayBePod(), r.status(&o)
		case "value":
			return o.kind == kindPriorityClass, r.classValue(&o)
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	r.cluster.Objects++
	r.next()
	if o.list {
		return nil
	}
	o.complete(r.static)
	r.cluster.add(&o)
	return nil
}

// mayBePod is false for what is known to be something else, whose fields mean
// something else.
func (o *object) mayBePod() bool { return o.kind == "" || o.kind == kindPod }

// complete fills in what an API server would.
func (o *object) complete(static bool) {
	o.pod.Namespace = cmp.Or(o.pod.Namespace, metav1.NamespaceDefault)
	if !o.grace {
		o.pod.Grace = v1.DefaultTerminationGracePeriodSeconds
	}
	o.pod.Static = o.pod.Static || static
	o.pod.OwnerKind, o.pod.OwnerName = o.owner.kind, o.owner.name
	if name, ok := strings.CutSuffix(o.owner.name, "-"+o.hash); ok && o.owner.kind == "ReplicaSet" && o.hash != "" {
		o.pod.OwnerKind, o.pod.OwnerName = "Deployment", name
	}
}

// shared reads a text that many objects have.
func (r reader) shared(to *string) error {
	text, err := r.text()
	if err == nil {
		*to = r.cluster.shared(text)
	}
	return err
}

func (r reader) classValue(o *object) error {
	if o.kind != kindPriorityClass {
		return nil
	}
	value, _, err := r.number(32)
	o.value = int32(value)
	return err
}

func (r reader) metadata(o *object) error {
	return r.values.object(func(name []byte) (bool, error) {
		switch string(name) {
		case "name":
			text, err := r.text()
			o.pod.Name = string(text)
			return true, err
		case "namespace":
			return true, r.shared(&o.pod.Namespace)
		case "annotations":
			return true, r.annotations(&o.pod)
		case "labels":
			return true, r.values.object(func(name []byte) (bool, error) {
				if string(name) != "pod-template-hash" {
					return false, nil
				}
				return true, r.shared(&o.hash)
			})
		case "ownerReferences":
			return true, r.array(func(int) error { return r.ownerReference(o) })
		}
		return false, nil
	})
}

func (r reader) annotations(pod *Pod) error {
	return r.values.object(func(name []byte) (bool, error) {
		switch string(name) {
		case v1.MirrorPodAnnotationKey:
			pod.Static = true
		case configSource:
			source, err := r.text()
			pod.Static = pod.Static || len(source) > 0 && string(source) != "api"
			return true, err
		}
		return false, nil
	})
}

// ownerReference keeps the first one, or the one that controls the pod.
func (r reader) ownerReference(o *object) error {
	var owner ownerReference
	controller := false
	err := r.values.object(func(name []byte) (bool, error) {
		switch string(name) {
		case "kind":
			return true, r.shared(&owner.kind)
		case "name":
			return true, r.shared(&owner.name)
		case "controller":
			controller = r.yes()
		}
		return false, nil
	})
	if controller || o.owner.name == "" {
		o.owner = owner
	}
	return err
}

func (r reader) status(o *object) error {
	if !o.mayBePod() {
		return nil
	}
	return r.values.object(func(name []byte) (bool, error) {
		if string(name) != "phase" {
			return false, nil
		}
		return true, r.shared(&o.phase)
	})
}

// sleepSeconds finds out how long a command sleeps that is a sleep, or a shell that
// begins with one; less than 0 if it is something else.
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
