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

// version is the version of the log. Others are not read.
const version = 1

// header is the first line of a log.
type header struct {
	Version int    `json:"version"`
	BootID  string `json:"bootID"`
}

// line is any other line: a shutdown, or a pod with its Object. Object is omitted if it has not
// changed.
type line[S, P, O any] struct {
	Shutdown S `json:"shutdown,omitempty"`
	Pod      P `json:"pod,omitempty"`
	Object   O `json:"object,omitempty"`
}

// entry is an encoded entity.
type entry struct {
	key       node.Key // "": the shutdown
	text      []byte   // its JSON
	pod       *v1.Pod  // the Object of the pod
	object    []byte   // its JSON; nil: none
	isPending bool     // its final status may be pending after a power cut
}

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

// set encodes an entity, and reports whether its Object has changed.
func (e *entry) set(entity any) (isNew bool, err error) {
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
	isNew = !bytes.Equal(next.object, e.object)
	*e = next
	return isNew, nil
}

// appendTo appends the line of the entry.
func (e *entry) appendTo(text []byte, hasObject bool) []byte {
	text = append(text, `{"`...)
	if e.key == "" {
		text = append(text, "shutdown"...)
	} else {
		text = append(text, "pod"...)
	}
	text = append(append(text, `":`...), e.text...)
	if hasObject {
		text = append(append(text, `,"object":`...), e.object...)
	}
	return append(text, "}\n"...)
}

// newestEntries has the newest entry of each entity, in the order of their first lines.
type newestEntries struct {
	sameBoot bool
	entries  []*entry
	byKey    map[node.Key]*entry
	lines    []byte // the last result of update
}

// update encodes entities and returns their lines, which are valid until the next call. If an entity
// occurs twice the last one counts. The error names the entities that cannot be encoded.
func (b *newestEntries) update(entities []any) (lines []byte, err error) {
	const usual = 1 << 10 // bytes of a pod and its object
	b.lines = slices.Grow(b.lines[:0], usual*len(entities))
	last := make(map[node.Key]any, len(entities))
	for _, entity := range entities {
		last[keyOf(entity)] = entity
	}
	var errs []error
	for _, entity := range entities {
		key := keyOf(entity)
		newest, isUnwritten := last[key]
		if !isUnwritten {
			continue
		}
		delete(last, key)
		e, isKnown := b.byKey[key]
		if !isKnown {
			e = &entry{key: key}
		}
		isNew, err := e.set(newest)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if !isKnown {
			if b.byKey == nil {
				b.byKey = map[node.Key]*entry{}
			}
			b.byKey[key], b.entries = e, append(b.entries, e)
		}
		b.lines = e.appendTo(b.lines, isNew)
	}
	return b.lines, errors.Join(errs...)
}

// hasPending reports whether a final status may be pending.
func (b *newestEntries) hasPending() bool {
	for _, e := range b.entries {
		if e.isPending {
			return true
		}
	}
	return false
}

// text returns a log with these entries.
func (b *newestEntries) text(bootID string) ([]byte, error) {
	text, err := json.Marshal(header{Version: version, BootID: bootID})
	text = append(text, '\n')
	for _, e := range b.entries {
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

type objectMeta struct {
	Namespace                  string            `json:"namespace,omitempty"`
	Name                       string            `json:"name,omitempty"`
	UID                        types.UID         `json:"uid,omitempty"`
	Generation                 int64             `json:"generation,omitempty"`
	Annotations                map[string]string `json:"annotations,omitempty"`
	DeletionTimestamp          *metav1.Time      `json:"deletionTimestamp,omitempty"`
	DeletionGracePeriodSeconds *int64            `json:"deletionGracePeriodSeconds,omitempty"`
}

type objectSpec struct {
	RestartPolicy                 v1.RestartPolicy  `json:"restartPolicy,omitempty"`
	TerminationGracePeriodSeconds *int64            `json:"terminationGracePeriodSeconds,omitempty"`
	InitContainers                []objectContainer `json:"initContainers,omitempty"`
	Containers                    []objectContainer `json:"containers"`
	EphemeralContainers           []objectContainer `json:"ephemeralContainers,omitempty"`
}

type objectContainer struct {
	Name          string                     `json:"name"`
	RestartPolicy *v1.ContainerRestartPolicy `json:"restartPolicy,omitempty"`
}

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
