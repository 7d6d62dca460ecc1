package statelog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// version is the version of the log's format. Logs of other versions are not read.
const version = 1

// header is the first line of a log.
type header struct {
	Version int    `json:"version"`
	BootID  string `json:"bootID"`
}

// line is any other line: a shutdown, or a pod with its Object. Object is omitted if it has not changed since
// the pod's line before, because it is the largest part. Its type parameters differ between reading and
// writing.
type line[S, P, O any] struct {
	Shutdown S `json:"shutdown,omitempty"`
	Pod      P `json:"pod,omitempty"`
	Object   O `json:"object,omitempty"`
}

// entry is the newest state of an entity, encoded.
type entry struct {
	key       node.Key // of a pod; "": the shutdown
	text      []byte   // the JSON of the entity, without the Object of a pod
	pod       *v1.Pod  // the Object of the pod
	object    []byte   // the JSON of that; nil: none
	isPending bool     // the pod's final status may be pending: the entry must survive a power cut
}

// keyOf returns the key of an entry: that of a pod, or "" for a shutdown.
func keyOf(entity any) node.Key {
	switch entity := entity.(type) {
	case node.Pod:
		return entity.Key
	case node.Shutdown:
		return ""
	default:
		return node.Key(fmt.Sprintf("%T", entity)) // cannot be encoded
	}
}

// set encodes an entity into the entry, which an error leaves unchanged. hasNewObject says that the Object of
// a pod has changed, so that its line must have it. An Object is large, and is encoded only if it is not the same pointer as
// the last time.
func (e *entry) set(entity any) (hasNewObject bool, err error) {
	next := *e
	switch entity := entity.(type) {
	case node.Shutdown:
		next.text, err = json.Marshal(entity)
	case node.Pod:
		of := entity.Object
		next.isPending = !entity.Signalled.IsZero() && !entity.Told
		entity.Object = nil
		if next.text, err = json.Marshal(entity); err == nil && of != e.pod && of != nil {
			next.pod = of
			next.object, err = json.Marshal(objectOf(of))
		}
	default:
		err = fmt.Errorf("%T is not an entity", entity)
	}
	if err != nil {
		return false, fmt.Errorf("failed to store the shutdown state: %w", err)
	}
	hasNewObject = !bytes.Equal(next.object, e.object)
	*e = next
	return hasNewObject, nil
}

// appendTo appends the line of the entry to text. withObject says whether the line has the Object.
func (e *entry) appendTo(text []byte, withObject bool) []byte {
	text = append(text, `{"`...)
	if e.key == "" {
		text = append(text, "shutdown"...)
	} else {
		text = append(text, "pod"...)
	}
	text = append(append(text, `":`...), e.text...)
	if withObject {
		text = append(append(text, `,"object":`...), e.object...)
	}
	return append(text, "}\n"...)
}

// newestEntries has the newest entry of each entity, in the order of their first lines. A new log is written
// from it.
type newestEntries struct {
	entries []*entry
	byKey   map[node.Key]*entry
	lines   []byte // the last result of update
}

// update replaces the entries of these entities and returns their lines, which are valid until the next call.
// An entity that occurs twice has one line, with its last state. The error names the entities that cannot be
// encoded.
func (all *newestEntries) update(entities []any) (lines []byte, err error) {
	const usual = 1 << 10 // bytes of a pod and its object
	all.lines = slices.Grow(all.lines[:0], usual*len(entities))
	last := make(map[node.Key]any, len(entities))
	for _, entity := range entities {
		last[keyOf(entity)] = entity
	}
	var errs []error
	for _, entity := range entities {
		key := keyOf(entity)
		newest, isUnwritten := last[key]
		if !isUnwritten { // it has its line already
			continue
		}
		delete(last, key)
		e, isKnown := all.byKey[key]
		if !isKnown {
			e = &entry{key: key}
		}
		hasNewObject, err := e.set(newest)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if !isKnown {
			if all.byKey == nil {
				all.byKey = map[node.Key]*entry{}
			}
			all.byKey[key], all.entries = e, append(all.entries, e)
		}
		all.lines = e.appendTo(all.lines, hasNewObject)
	}
	return all.lines, errors.Join(errs...)
}

// hasPending reports whether the final status of a pod may be pending, which a power cut must not lose.
func (all *newestEntries) hasPending() bool {
	for _, e := range all.entries {
		if e.isPending {
			return true
		}
	}
	return false
}

// text returns the text of a log with these entries.
func (all *newestEntries) text(bootID string) ([]byte, error) {
	text, err := json.Marshal(header{Version: version, BootID: bootID})
	text = append(text, '\n')
	for _, e := range all.entries {
		text = e.appendTo(text, e.object != nil)
	}
	return text, err
}

// object is the part of a pod that a kill and the final status need. It omits zero values, which the
// JSON of a v1.Pod would contain.
type object struct {
	Metadata objectMeta    `json:"metadata"`
	Spec     objectSpec    `json:"spec"`
	Status   *v1.PodStatus `json:"status"`
}

// objectMeta is the stored part of a pod's metadata.
type objectMeta struct {
	Namespace                  string            `json:"namespace,omitempty"`
	Name                       string            `json:"name,omitempty"`
	UID                        types.UID         `json:"uid,omitempty"`
	Generation                 int64             `json:"generation,omitempty"`
	Annotations                map[string]string `json:"annotations,omitempty"`
	DeletionTimestamp          *metav1.Time      `json:"deletionTimestamp,omitempty"`
	DeletionGracePeriodSeconds *int64            `json:"deletionGracePeriodSeconds,omitempty"`
}

// objectSpec is the stored part of a pod's spec.
type objectSpec struct {
	RestartPolicy                 v1.RestartPolicy  `json:"restartPolicy,omitempty"`
	TerminationGracePeriodSeconds *int64            `json:"terminationGracePeriodSeconds,omitempty"`
	InitContainers                []objectContainer `json:"initContainers,omitempty"`
	Containers                    []objectContainer `json:"containers"`
	EphemeralContainers           []objectContainer `json:"ephemeralContainers,omitempty"`
}

// objectContainer is the stored part of a container in a pod's spec.
type objectContainer struct {
	Name          string                     `json:"name"`
	RestartPolicy *v1.ContainerRestartPolicy `json:"restartPolicy,omitempty"`
}

// objectOf returns the part of a pod that is stored.
func objectOf(pod *v1.Pod) *object {
	stored := &object{
		Metadata: objectMeta{
			Namespace:                  pod.Namespace,
			Name:                       pod.Name,
			UID:                        pod.UID,
			Generation:                 pod.Generation,
			Annotations:                pod.Annotations,
			DeletionTimestamp:          pod.DeletionTimestamp,
			DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
		},
		Spec:   objectSpec{RestartPolicy: pod.Spec.RestartPolicy, TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds},
		Status: &pod.Status,
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		stored.Spec.InitContainers = append(stored.Spec.InitContainers, objectContainer{Name: c.Name, RestartPolicy: c.RestartPolicy})
	}
	for i := range pod.Spec.Containers {
		stored.Spec.Containers = append(stored.Spec.Containers, objectContainer{Name: pod.Spec.Containers[i].Name})
	}
	for i := range pod.Spec.EphemeralContainers {
		stored.Spec.EphemeralContainers = append(stored.Spec.EphemeralContainers, objectContainer{Name: pod.Spec.EphemeralContainers[i].Name})
	}
	return stored
}
