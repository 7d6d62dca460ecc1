// Package kills picks the pods that a drain kills, calls the killer for each, and keeps the
// results.
//
// A [Roster] picks the pods of a bucket from the list of all pods and keeps their kills. A
// [Batch] kills the pods of one bucket at the same time. A [Kill] is the kill of one pod. The
// package does not know the drain or its timetable: a [Killing] has what it needs of them.
package kills

import (
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Roster holds the kills of one drain. The pods are listed again before each bucket, and almost
// always a pod has the same index as before. So Pick compares pods by their indexes first, and
// looks up a UID only if that fails. Only one goroutine may call Pick; all other methods may be
// called concurrently.
type Roster struct {
	event  time.Time // of the drain
	listed []*v1.Pod // a copy of the last list
	picked []bool    // the pods of listed that have a kill

	mu      sync.Mutex // guards all below
	kills   []*Kill    // in the order in which they were picked
	indexed int        // the number of kills that are in index
	index   map[types.UID]*Kill
}

// NewRoster returns a roster for a drain whose event was received at a time.
func NewRoster(event time.Time) *Roster { return &Roster{event: event} }

// killsAtOnce is how many kills are allocated at once.
const killsAtOnce = 256

// Pick returns a new kill for each pod that wants accepts. It skips nil pods, pods that were
// picked before, and further objects of a pod that the list has twice. bucket is the priority
// that names the bucket. wants returns the priority of a pod and whether the bucket has it.
func (r *Roster) Pick(pods []*v1.Pod, bucket int32, wants func(*v1.Pod) (priority int32, ok bool)) []*Kill {
	picked := make([]bool, len(pods))
	before := len(r.kills) // no other goroutine writes kills
	kills := slices.Grow(r.kills, max(len(pods)-before, 0))
	chosen := make(map[types.UID]struct{}, len(pods)) // in this call
	var lot []Kill                                    // the unused kills of the last allocation
	for i, pod := range pods {
		if pod == nil {
			continue
		}
		same := i < len(r.listed) && r.listed[i] == pod
		if same && r.picked[i] || !same && r.Find(Key(pod)) != nil {
			picked[i] = true
			continue
		}
		var priority int32
		if priority, picked[i] = wants(pod); picked[i] {
			if chosen[Key(pod)] = struct{}{}; len(chosen) == len(kills)-before {
				continue
			}
			if len(lot) == 0 {
				lot = make([]Kill, min(len(pods)-i, killsAtOnce))
			}
			k := &lot[0]
			lot = lot[1:]
			k.Pod, k.Priority, k.Bucket, k.event = pod, priority, bucket, &r.event
			kills = append(kills, k)
		}
	}
	r.listed, r.picked = append(r.listed[:0], pods...), picked
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kills = kills
	return slices.Clip(kills[before:])
}

// All returns the kills so far. The slice is not written to again.
func (r *Roster) All() []*Kill {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.kills)
}

// Find returns the kill of a pod; nil if there is none. The index is built in Find, because most
// drains never need it.
func (r *Roster) Find(key types.UID) *Kill {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.indexed < len(r.kills) && r.index == nil {
		r.index = make(map[types.UID]*Kill, len(r.kills))
	}
	for ; r.indexed < len(r.kills); r.indexed++ {
		k := r.kills[r.indexed]
		r.index[Key(k.Pod)] = k
	}
	return r.index[key]
}
