package statelog

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// version is the version of the log's format. Logs of other versions are not read.
const version = 1

// usualPodBytes is about the size of a pod's line with its Object. A buffer for so many bytes a pod need not grow while kills wait
// for the log.
const usualPodBytes = 1 << 10

// header is the first line of a log.
type header struct {
	Version int    `json:"version"`
	BootID  string `json:"bootID"`
}

// line is a line of a log, other than the first: a shutdown, or a pod. Object is the stored part of the pod's Object. It is
// large, and so it is only written when the pod has another Object than in its previous line.
type line struct {
	Shutdown *node.Shutdown `json:"shutdown,omitempty"`
	Pod      *node.Pod      `json:"pod,omitempty"`
	Object   *v1.Pod        `json:"object,omitempty"`
}

// newestEntries has the newest entry of each entity. The pods are in the order of their first lines. A new log is written
// from it, and a log that is read is collected in it.
type newestEntries struct {
	node.Entries
	indexOf map[node.Key]int // the index of a pod in Pods, by key
}

// pod returns the newest entry of the pod with this key; nil: there is none.
func (all *newestEntries) pod(key node.Key) *node.Pod {
	if i, isKnown := all.indexOf[key]; isKnown {
		return all.Pods[i]
	}
	return nil
}

// put adds the entry of a pod, or replaces the older one.
func (all *newestEntries) put(p *node.Pod) {
	i, isKnown := all.indexOf[p.Key]
	if isKnown {
		all.Pods[i] = p
		return
	}
	if all.indexOf == nil {
		all.indexOf = map[node.Key]int{}
	}
	all.indexOf[p.Key] = len(all.Pods)
	all.Pods = append(all.Pods, p)
}

// update replaces the entries of the shutdown and pods in entries, and returns their lines, which the caller writes to the log.
// It keeps the shutdown and pods, so they must not change any more. A pod that occurs twice has one line, with its last state.
// Entries that cannot be encoded stay as they were, and the error says why.
func (all *newestEntries) update(entries node.Entries) (lines []byte, err error) {
	var text bytes.Buffer
	text.Grow(usualPodBytes * len(entries.Pods))
	encoder := json.NewEncoder(&text)
	var errs []error
	if s := entries.Shutdown; s != nil {
		if err := encoder.Encode(line{Shutdown: s}); err != nil {
			errs = append(errs, err)
		} else {
			all.Shutdown = s
		}
	}
	unwritten := make(map[node.Key]*node.Pod, len(entries.Pods)) // the last state of each pod that has no line yet
	for _, p := range entries.Pods {
		unwritten[p.Key] = p
	}
	for _, p := range entries.Pods {
		newest, isUnwritten := unwritten[p.Key]
		if !isUnwritten { // the pod occurs twice, and has its line already
			continue
		}
		delete(unwritten, p.Key)
		next := line{Pod: newest}
		before := all.pod(p.Key)
		if isObjectNew := before == nil || before.Object != newest.Object; isObjectNew {
			next.Object = objectOf(newest.Object)
		}
		if err := encoder.Encode(next); err != nil {
			errs = append(errs, err)
			continue
		}
		all.put(newest)
	}
	return text.Bytes(), errors.Join(errs...)
}

// isEmpty reports whether there are no entries.
func (all *newestEntries) isEmpty() bool { return all.Shutdown == nil && len(all.Pods) == 0 }

// hasPendingStatus reports whether the final status of any pod may be pending. A power cut must not lose that.
func (all *newestEntries) hasPendingStatus() bool {
	return slices.ContainsFunc(all.Pods, func(p *node.Pod) bool {
		isSignalled := !p.Signalled.IsZero()
		return isSignalled && !p.StatusAccepted
	})
}

// text returns the text of a log with these entries.
func (all *newestEntries) text(bootID string) ([]byte, error) {
	var text bytes.Buffer
	text.Grow(usualPodBytes * len(all.Pods))
	encoder := json.NewEncoder(&text)
	err := encoder.Encode(header{Version: version, BootID: bootID})
	if all.Shutdown != nil {
		err = errors.Join(err, encoder.Encode(line{Shutdown: all.Shutdown}))
	}
	for _, p := range all.Pods {
		err = errors.Join(err, encoder.Encode(line{Pod: p, Object: objectOf(p.Object)}))
	}
	return text.Bytes(), err
}

// objectOf returns the part of a pod that is stored: what a kill with its preStop hooks and the final status need. It leaves
// out all else that may be large or secret, such as environment variables and the annotation with the last applied configuration.
// The hooks that stay may have secrets too.
func objectOf(pod *v1.Pod) *v1.Pod {
	if pod == nil {
		return nil
	}
	stored := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:                  pod.Namespace,
			Name:                       pod.Name,
			UID:                        pod.UID,
			Generation:                 pod.Generation,
			DeletionTimestamp:          pod.DeletionTimestamp,
			DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
		},
		Spec:   v1.PodSpec{RestartPolicy: pod.Spec.RestartPolicy, TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds},
		Status: pod.Status,
	}
	for i := range pod.Spec.InitContainers {
		stored.Spec.InitContainers = append(stored.Spec.InitContainers, containerOf(&pod.Spec.InitContainers[i]))
	}
	for i := range pod.Spec.Containers {
		stored.Spec.Containers = append(stored.Spec.Containers, containerOf(&pod.Spec.Containers[i]))
	}
	for i := range pod.Spec.EphemeralContainers {
		stored.Spec.EphemeralContainers = append(stored.Spec.EphemeralContainers, v1.EphemeralContainer{
			EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: pod.Spec.EphemeralContainers[i].Name},
		})
	}
	// Keep only the annotations that say whether the pod is a static one, and from which manifest.
	for _, name := range []string{staticpod.SourceAnnotation, staticpod.HashAnnotation, v1.MirrorPodAnnotationKey} {
		if value, isSet := pod.Annotations[name]; isSet {
			metav1.SetMetaDataAnnotation(&stored.ObjectMeta, name, value)
		}
	}
	return stored
}

// containerOf returns the part of a container that is stored. Of its hooks only preStop is stored, together with the
// container's ports, because an httpGet hook may name one of them.
func containerOf(c *v1.Container) v1.Container {
	stored := v1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy}
	if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
		stored.Ports, stored.Lifecycle = c.Ports, &v1.Lifecycle{PreStop: c.Lifecycle.PreStop}
	}
	return stored
}
