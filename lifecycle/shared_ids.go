package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// idNames has the names of containers by their ID, of IDs that several containers have.
type idNames map[string][]string

// sharedIDs returns the IDs that containers with different names have in common; nil if there are none.
func sharedIDs(containers []Container) (shared idNames) {
	if len(containers) < 2 {
		return nil
	}
	first := make(map[string]string, len(containers))
	for _, c := range containers {
		name, known := first[c.ID]
		switch {
		case !known:
			first[c.ID] = c.Name
		case name == c.Name || slices.Contains(shared[c.ID], c.Name):
		case shared == nil:
			shared = idNames{c.ID: {name, c.Name}}
		case shared[c.ID] == nil:
			shared[c.ID] = []string{name, c.Name}
		default:
			shared[c.ID] = append(shared[c.ID], c.Name)
		}
	}
	return shared
}

// sharedIDError is the error of containers that have the same ID.
func sharedIDError(id string, names []string) error {
	return fmt.Errorf("containers %q have the same ID %q", names, id)
}

// log logs the IDs that containers of a pod have in common.
func (shared idNames) log(ctx context.Context, apiPod *v1.Pod) {
	for id, names := range shared {
		klog.FromContext(ctx).Error(sharedIDError(id, names), "StopContainer cannot tell the containers of a pod apart", "pod", klog.KObj(apiPod))
	}
}

// share notes in the stops which containers have the same ID. The mutex is held.
func (t *Termination) share(shared idNames) {
	for _, s := range t.stops {
		if names := shared[s.container.ID]; names != nil {
			s.sharing = names
		}
	}
}

// addShared adds the error of a shared ID to the result of a stop, and the results of the containers that
// have the same ID and no stop of their own. The mutex is held.
func (t *Termination) addShared(results []ContainerResult, own int) []ContainerResult {
	s := t.stops[own]
	if s.sharing == nil {
		return results
	}
	results[own].Err = errors.Join(s.result.Err, sharedIDError(s.container.ID, s.sharing))
	for _, name := range s.sharing {
		if !slices.ContainsFunc(t.stops, func(other *stop) bool { return other.container.Name == name }) &&
			!slices.ContainsFunc(results, func(other ContainerResult) bool { return other.Name == name }) {
			other := results[own]
			other.Name = name
			results = append(results, other)
		}
	}
	return results
}
