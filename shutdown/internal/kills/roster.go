// Package kills knows which pods a drain has signalled, calls the killer for each, and
// keeps what came of it.
//
// A [Roster] picks the pods of a bucket out of the list of all pods and knows them
// afterwards; a [Batch] kills the pods of one bucket at the same moment; a [Kill] is one
// of them. The package knows neither the drain nor its timetable: what a kill needs of
// them is in a [Killing].
package kills

import (
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Roster has the kills of one drain. The pods are listed again before each bucket, and
// almost always each is where it was: so they are compared by their places first, and
// looked up by their UIDs only where that fails. Pick is for one goroutine, all else for
// any.
type Roster struct {
	event  time.Time // of the drain
	listed []*v1.Pod // as they were listed last; a copy, the list is its owner's
	picked []bool    // by the same places

	mu      sync.Mutex // guards all below
	kills   []*Kill    // in the order in which they were picked
	indexed int        // so many kills are in the index
	index   map[types.UID]*Kill
}

// NewRoster makes a roster for a drain whose event was received at this time.
func NewRoster(event time.Time) *Roster { return &Roster{event: event} }

// killsAtOnce is how many kills are made at once.
const killsAtOnce = 256

// Pick gives a kill for each pod of a list that bucket wants, and that was not picked
// before. Nil pods are left out, and so is a pod that the list has had already, whatever
// object it is there. wants gives the pod's priority and whether it is meant.
func (r *Roster) Pick(pods []*v1.Pod, bucket int32, wants func(*v1.Pod) (priority int32, ok bool)) []*Kill {
	picked := make([]bool, len(pods))
	before := len(r.kills) // which nobody else writes to
	kills := slices.Grow(r.kills, max(len(pods)-before, 0))
	chosen := make(map[types.UID]struct{}, len(pods)) // by this call
	var room []Kill                                   // kills are made in lots, and not moved
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
			if len(room) == 0 {
				room = make([]Kill, min(len(pods)-i, killsAtOnce))
			}
			k := &room[0]
			room = room[1:]
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

// All are the kills so far. The list is not written to again.
func (r *Roster) All() []*Kill {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.kills)
}

// Find gives the kill of a pod; nil: there is none. The index is made when it is asked
// for.
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
