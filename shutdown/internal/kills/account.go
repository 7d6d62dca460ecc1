// Package kills holds everyone whom a node shutdown kills, and calls the killer for them.
//
// An [Account] has one [Kill] for each pod of a shutdown, over all of its drains. A [Picker]
// picks the pods of a bucket for one drain. A [Batch] kills the pods of one bucket at the same
// time. The package does not know the drain or its timetable: a [Killing] has what it needs of
// them.
package kills

import (
	"math"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// killsAtOnce is how many kills are allocated at once.
const killsAtOnce = 256

// Account holds the kills of one shutdown: each pod once, however many drains the shutdown has.
// All methods may be called concurrently.
type Account struct {
	event    *time.Time            // apart, because a kill may outlive its account
	underway func(types.UID) *Kill // the kill of an earlier shutdown whose pod is not known to have ended; nil: there is none

	mu      sync.Mutex // guards all below
	all     []*Kill    // in the order in which they were listed
	joined  map[*Kill]struct{}
	indexed int // the number of kills of all that are in index
	index   map[types.UID]*Kill
}

// NewAccount returns an account for a shutdown whose first event was received at a time.
// underway returns the kill of a pod that an earlier shutdown has signalled and that has not
// ended; nil: none.
func NewAccount(event time.Time, underway func(types.UID) *Kill) *Account {
	return &Account{event: &event, underway: underway}
}

// Restored is a pod of a former agent's record.
type Restored struct {
	Pod              *v1.Pod
	Priority, Bucket int32
	Signalled        bool
	Seconds          int64 // the granted grace period
	Started, Ended   time.Time
	Shortened        time.Time // the end of the grace period that a later call had set; zero: none had
	Outcome          string
	Err              error // of the last call
	Joined           bool  // an earlier shutdown had signalled it
}

// Restore adds a pod of a former agent's record. Call it before the first drain.
func (a *Account) Restore(r Restored) {
	k := &Kill{Priority: r.Priority, event: a.event, bucket: r.Bucket, restored: true, grace: grace{seconds: r.Seconds}, end: end{err: r.Err}}
	k.pod.Store(r.Pod)
	if r.Signalled {
		k.phase, k.started = signalled, r.Started.Sub(*a.event)
		k.until = math.MaxInt64
		if grace := graceperiod.Duration(r.Seconds); grace < math.MaxInt64-max(k.started, 0) {
			k.until = k.started + grace
		}
		if !r.Shortened.IsZero() {
			k.until = min(k.until, r.Shortened.Sub(*a.event))
		}
	}
	if !r.Ended.IsZero() {
		k.phase, k.ended, k.result = ended, r.Ended.Sub(*a.event), Result{Outcome: r.Outcome}
		k.counted, k.acknowledged, k.former = true, true, true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, k)
	if r.Joined {
		a.join(k)
	}
}

// Join adds kills of earlier shutdowns that are under way, whose pods need not be listed. Call it before
// the first drain.
func (a *Account) Join(underway []*Kill) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, k := range underway {
		a.all = append(a.all, k)
		a.join(k)
	}
}

// Find returns the kill of a pod; nil if there is none.
func (a *Account) Find(key types.UID) *Kill {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.find(key)
}

// find is Find with the mutex held. The index is built here, because most shutdowns never need
// it.
func (a *Account) find(key types.UID) *Kill {
	if a.indexed < len(a.all) && a.index == nil {
		a.index = make(map[types.UID]*Kill, len(a.all))
	}
	for ; a.indexed < len(a.all); a.indexed++ {
		k := a.all[a.indexed]
		a.index[Key(k.Pod())] = k
	}
	return a.index[key]
}

// All returns all kills, in the order in which they were listed.
func (a *Account) All() []*Kill {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clip(a.all)
}

// Joined reports whether an earlier shutdown has signalled the pod.
func (a *Account) Joined(k *Kill) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, joined := a.joined[k]
	return joined
}

// addListed returns the kills of a list of pods, in its order; nil for a nil pod and for a further
// object of a pod that the list has twice. A pod that is new gets a kill. priorities is called for
// the new pods, without a lock; it may call an embedder's code.
func (a *Account) addListed(pods []*v1.Pod, priorities func([]*v1.Pod) []int32) []*Kill {
	kills, fresh := a.known(pods)
	if len(fresh) == 0 {
		return kills
	}
	newPods := make([]*v1.Pod, len(fresh))
	for n, i := range fresh {
		newPods[n] = pods[i]
	}
	of := priorities(newPods)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.index == nil {
		a.index = make(map[types.UID]*Kill, len(a.all)+len(fresh))
	}
	a.all = slices.Grow(a.all, len(fresh))
	var lot []Kill // the unused kills of the last allocation
	for n, i := range fresh {
		pod := pods[i]
		if a.find(Key(pod)) != nil {
			continue // twice in the list, or entered by another drain meanwhile
		}
		if k := a.findUnderway(pod); k != nil {
			kills[i] = k
			a.all = append(a.all, k)
			continue
		}
		if len(lot) == 0 {
			lot = make([]Kill, min(len(fresh)-n, killsAtOnce))
		}
		k := &lot[0]
		lot = lot[1:]
		k.Priority, k.event = of[n], a.event
		k.pod.Store(pod)
		kills[i] = k
		a.all = append(a.all, k)
	}
	return kills
}

// findUnderway returns the kill of an earlier shutdown that the pod's kill joins. The mutex is
// held.
func (a *Account) findUnderway(pod *v1.Pod) *Kill {
	k := a.underway(Key(pod))
	if k == nil {
		return nil
	}
	a.join(k)
	return k
}

// join marks a kill as that of an earlier shutdown. The mutex is held.
func (a *Account) join(k *Kill) {
	if a.joined == nil {
		a.joined = map[*Kill]struct{}{}
	}
	a.joined[k] = struct{}{}
}

// TakeOver has the account go on with kills that another one has under way, of pods that need not be
// listed. They take the place of its own for the same pods, which nobody sees to any more. Call it between
// two drains.
func (a *Account) TakeOver(underway []*Kill) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, k := range underway {
		switch own := a.find(Key(k.Pod())); {
		case own == nil && k.UnderWay() && !k.HasEnded():
			a.all = append(a.all, k)
			a.join(k)
		case own != nil && own != k && !own.HasEnded() && !own.UnderWay():
			a.all = slices.Clone(a.all) // a list of All must not change
			a.all[slices.Index(a.all, own)] = k
			a.index[Key(k.Pod())] = k
			a.join(k)
		}
	}
}

// known returns the kills of the pods that have one, and the indexes of those that have none.
func (a *Account) known(pods []*v1.Pod) (kills []*Kill, fresh []int) {
	kills = make([]*Kill, len(pods))
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := len(a.all) == 0
	if seen {
		fresh = make([]int, 0, len(pods))
	}
	for i, pod := range pods {
		if pod == nil {
			continue
		}
		if !seen {
			if k := a.find(Key(pod)); k != nil {
				k.pod.Store(pod)
				kills[i] = k
				continue
			}
		}
		fresh = append(fresh, i)
	}
	return kills, fresh
}
