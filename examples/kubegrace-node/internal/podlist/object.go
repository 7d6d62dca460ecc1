package podlist

import (
	"cmp"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// configSource is the annotation with the source from which a kubelet has read a pod
// (ConfigSourceAnnotationKey of the kubelet).
const configSource = "kubernetes.io/config.source"

// The kinds of the objects that are kept.
const (
	kindPod           = "Pod"
	kindPriorityClass = "PriorityClass"
	kindNode          = "Node"
)

// object has the fields of an object that were read.
type object struct {
	kind         string
	node, phase  string
	value        int32 // of a priority class
	isList       bool  // the object has items
	hasGrace     bool  // the pod sets its grace period
	pod          Pod
	owner        ownerReference
	templateHash string // the label pod-template-hash
	pool         string // the label of a node that names its pool
}

type ownerReference struct{ kind, name string }

// objectReader reads objects into a cluster.
type objectReader struct {
	values
	cluster *Cluster
	static  bool // all pods are static pods
}

// object reads an object or a list of objects, whose fields come in any order. kind is the
// kind of an object that does not say it, as the items of an API server's PodList do not.
func (r objectReader) object(kind string) error {
	o := object{kind: kind}
	err := r.eachField(func(name []byte) (bool, error) {
		switch string(name) {
		case "kind":
			return true, r.intern(&o.kind)
		case "items":
			o.isList = true
			return true, r.eachItem(func(int) error { return r.object(kindPod) })
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
	r.objectDone()
	if o.isList {
		return nil
	}
	o.complete(r.static)
	r.cluster.add(&o)
	return nil
}

// mayBePod is false if the kind is known not to be a pod. The spec and the status of another
// kind have other fields.
func (o *object) mayBePod() bool { return o.kind == "" || o.kind == kindPod }

// complete sets the API server's defaults, and the owner.
func (o *object) complete(static bool) {
	o.pod.Namespace = cmp.Or(o.pod.Namespace, metav1.NamespaceDefault)
	if !o.hasGrace {
		o.pod.Grace = v1.DefaultTerminationGracePeriodSeconds
	}
	o.pod.Static = o.pod.Static || static
	o.pod.OwnerKind, o.pod.OwnerName = o.owner.kind, o.owner.name
	if name, ok := strings.CutSuffix(o.owner.name, "-"+o.templateHash); ok && o.owner.kind == "ReplicaSet" && o.templateHash != "" {
		o.pod.OwnerKind, o.pod.OwnerName = "Deployment", name
	}
}

// intern reads a text that many objects have in common.
func (r objectReader) intern(to *string) error {
	text, err := r.text()
	if err == nil {
		*to = r.cluster.intern(text)
	}
	return err
}

func (r objectReader) classValue(o *object) error {
	if o.kind != kindPriorityClass {
		return nil
	}
	value, _, err := r.number(32)
	o.value = int32(value)
	return err
}

func (r objectReader) metadata(o *object) error {
	return r.eachField(func(name []byte) (bool, error) {
		switch string(name) {
		case "name":
			text, err := r.text()
			o.pod.Name = string(text)
			return true, err
		case "namespace":
			return true, r.intern(&o.pod.Namespace)
		case "annotations":
			return true, r.annotations(&o.pod)
		case "labels":
			return true, r.eachField(func(name []byte) (bool, error) {
				switch {
				case string(name) == "pod-template-hash":
					return true, r.intern(&o.templateHash)
				case o.kind != kindPod && r.cluster.isPoolLabel(string(name)):
					return true, r.intern(&o.pool)
				}
				return false, nil
			})
		case "ownerReferences":
			return true, r.eachItem(func(int) error { return r.ownerReference(o) })
		}
		return false, nil
	})
}

func (r objectReader) annotations(pod *Pod) error {
	return r.eachField(func(name []byte) (bool, error) {
		switch string(name) {
		case v1.MirrorPodAnnotationKey:
			pod.Static, pod.Mirror = true, true
		case configSource:
			source, err := r.text()
			pod.Static = pod.Static || len(source) > 0 && string(source) != "api"
			return true, err
		}
		return false, nil
	})
}

// ownerReference reads an owner. The controller of the pod wins over the first owner.
func (r objectReader) ownerReference(o *object) error {
	var owner ownerReference
	controller := false
	err := r.eachField(func(name []byte) (bool, error) {
		switch string(name) {
		case "kind":
			return true, r.intern(&owner.kind)
		case "name":
			return true, r.intern(&owner.name)
		case "controller":
			controller = r.isTrue()
		}
		return false, nil
	})
	if controller || o.owner.name == "" {
		o.owner = owner
	}
	return err
}

func (r objectReader) status(o *object) error {
	if !o.mayBePod() {
		return nil
	}
	return r.eachField(func(name []byte) (bool, error) {
		if string(name) != "phase" {
			return false, nil
		}
		return true, r.intern(&o.phase)
	})
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
