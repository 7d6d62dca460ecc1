package statelog

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// version is the version of the log's format. Logs of other versions are not read.
const version = 1

// header is the first line of a log.
type header struct {
	Version int    `json:"version"`
	BootID  string `json:"bootID"`
}

// podEntry is the newest entry of a pod, encoded.
type podEntry struct {
	text      []byte  // the JSON of the node.Pod, which has no Object
	pod       *v1.Pod // the Object: the pod as the API server has it
	object    []byte  // the JSON of what is stored of the Object; nil: there is none
	isPending bool    // the pod's final status may be pending: the entry must survive a power cut
}

// set encodes a pod into the entry. After an error the entry is unchanged. hasNewObject says that the encoded Object has
// changed, so that the pod's next line must contain it. To save time, the Object is encoded only if its pointer has changed.
func (e *podEntry) set(p *node.Pod) (hasNewObject bool, err error) {
	next := *e
	next.isPending = !p.Signalled.IsZero() && !p.Told
	next.text, err = json.Marshal(p)
	if err == nil && p.Object != e.pod && p.Object != nil {
		next.pod = p.Object
		next.object, err = json.Marshal(objectOf(p.Object))
	}
	if err != nil {
		return false, err
	}
	hasNewObject = !bytes.Equal(next.object, e.object)
	*e = next
	return hasNewObject, nil
}

// appendTo appends the pod's line of the log to text. withObject says whether the line also contains the stored part of the
// Object: it is large, so a line contains it only if it is new or has changed.
func (e *podEntry) appendTo(text []byte, withObject bool) []byte {
	text = append(append(text, `{"pod":`...), e.text...)
	if withObject {
		text = append(append(text, `,"object":`...), e.object...)
	}
	return append(text, "}\n"...)
}

// newestEntries has the newest entry of each entity, encoded. A new log is written from it.
type newestEntries struct {
	shutdown []byte      // the JSON of the shutdown; nil: none
	pods     []*podEntry // in the order of their first lines
	byKey    map[node.Key]*podEntry
	lines    []byte // the last result of update
}

// appendShutdown appends the line of the shutdown to text, if there is one.
func (all *newestEntries) appendShutdown(text []byte) []byte {
	if all.shutdown == nil {
		return text
	}
	return append(append(append(text, `{"shutdown":`...), all.shutdown...), "}\n"...)
}

// update replaces the entries of these entities and returns their lines, which are valid until the next call.
// A pod that occurs twice has one line, with its last state. The error names the entities that cannot be
// encoded.
func (all *newestEntries) update(entries node.Entries) (lines []byte, err error) {
	const usualPodBytes = 1 << 10 // of a pod with its object
	all.lines = slices.Grow(all.lines[:0], usualPodBytes*len(entries.Pods))
	if all.byKey == nil {
		all.byKey = map[node.Key]*podEntry{}
	}
	var errs []error
	if entries.Shutdown != nil {
		text, err := json.Marshal(*entries.Shutdown)
		if err == nil {
			all.shutdown = text
			all.lines = all.appendShutdown(all.lines)
		}
		errs = append(errs, err)
	}
	unwritten := make(map[node.Key]*node.Pod, len(entries.Pods)) // the last state of each pod that has no line yet
	for _, p := range entries.Pods {
		unwritten[p.Key] = p
	}
	for _, p := range entries.Pods {
		if last, isUnwritten := unwritten[p.Key]; isUnwritten {
			delete(unwritten, p.Key)
			errs = append(errs, all.updatePod(last))
		}
	}
	return all.lines, errors.Join(errs...)
}

// updatePod replaces the entry of a pod, and appends its line to all.lines. After an error nothing has changed.
func (all *newestEntries) updatePod(p *node.Pod) error {
	e, isKnown := all.byKey[p.Key]
	if !isKnown {
		e = &podEntry{}
	}
	hasNewObject, err := e.set(p)
	if err != nil {
		return err
	}
	if !isKnown {
		all.byKey[p.Key], all.pods = e, append(all.pods, e)
	}
	all.lines = e.appendTo(all.lines, hasNewObject)
	return nil
}

// isEmpty reports whether there are no entries.
func (all *newestEntries) isEmpty() bool { return all.shutdown == nil && len(all.pods) == 0 }

// hasPending reports whether the final status of a pod may be pending, which a power cut must not lose.
func (all *newestEntries) hasPending() bool {
	return slices.ContainsFunc(all.pods, func(e *podEntry) bool { return e.isPending })
}

// text returns the text of a log with these entries.
func (all *newestEntries) text(bootID string) ([]byte, error) {
	text, err := json.Marshal(header{Version: version, BootID: bootID})
	text = all.appendShutdown(append(text, '\n'))
	for _, e := range all.pods {
		text = e.appendTo(text, e.object != nil)
	}
	return text, err
}

// object is the part of a pod that a kill with its preStop hooks and the final status need. It omits zero values, which
// the JSON of a v1.Pod would contain, and what may be large or secret, such as environment variables and the annotation
// with the last applied configuration.
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
	Ports         []v1.ContainerPort         `json:"ports,omitempty"` // an httpGet hook may name one of them
	Lifecycle     *v1.Lifecycle              `json:"lifecycle,omitempty"`
}

// objectOf returns the part of a pod that is stored.
func objectOf(pod *v1.Pod) *object {
	stored := &object{
		Metadata: objectMeta{
			Namespace:                  pod.Namespace,
			Name:                       pod.Name,
			UID:                        pod.UID,
			Generation:                 pod.Generation,
			DeletionTimestamp:          pod.DeletionTimestamp,
			DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
		},
		Spec:   objectSpec{RestartPolicy: pod.Spec.RestartPolicy, TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds},
		Status: &pod.Status,
	}
	for i := range pod.Spec.InitContainers {
		stored.Spec.InitContainers = append(stored.Spec.InitContainers, containerOf(&pod.Spec.InitContainers[i]))
	}
	for i := range pod.Spec.Containers {
		stored.Spec.Containers = append(stored.Spec.Containers, containerOf(&pod.Spec.Containers[i]))
	}
	for i := range pod.Spec.EphemeralContainers {
		stored.Spec.EphemeralContainers = append(stored.Spec.EphemeralContainers, objectContainer{Name: pod.Spec.EphemeralContainers[i].Name})
	}
	// Keep only the annotations that say whether the pod is a static one, and from which manifest.
	for _, name := range []string{staticpod.SourceAnnotation, staticpod.HashAnnotation, v1.MirrorPodAnnotationKey} {
		if value, is := pod.Annotations[name]; is {
			if stored.Metadata.Annotations == nil {
				stored.Metadata.Annotations = map[string]string{}
			}
			stored.Metadata.Annotations[name] = value
		}
	}
	return stored
}

// containerOf returns the part of a container that is stored. Of the hooks this is only preStop, with the ports that an
// httpGet hook may name.
func containerOf(c *v1.Container) objectContainer {
	stored := objectContainer{Name: c.Name, RestartPolicy: c.RestartPolicy}
	if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
		stored.Ports, stored.Lifecycle = c.Ports, &v1.Lifecycle{PreStop: c.Lifecycle.PreStop}
	}
	return stored
}
