package outbox

import (
	"errors"
	"math"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/staticpod"
)

// Kind is the kind of a debt that concerns a pod. The zero value is KindStatus.
type Kind uint8

// The kinds, in the order in which they are sent.
const (
	KindStatus      Kind = iota // the final status
	KindMark                    // the pod is not ready
	KindRestoration             // the pod is as ready as it was before its mark
	kinds
)

// String returns the name of the reporter's method that pays debts of this kind.
func (k Kind) String() string {
	return [...]string{"FlushPod", "MarkNotReady", "RestoreReadiness"}[k]
}

// errWithdrawn ends what is no longer to be sent, and the call that is under way for it.
var errWithdrawn = errors.New("it is no longer to be sent")

// debt is one thing that the API server must be told of one pod. There may be one for each pod of
// the node, so it is kept small. The mutex of the outbox guards it, but for the kind, which stays.
//
// A mark remains a debt after its call: whether it was answered or not, it may have to be
// restored.
type debt struct {
	kind      Kind
	withdrawn bool // it goes as soon as no call is under way
	queued    bool // a list of the book has it
	calls     uint16
	cut       uint8  // calls that ended without an answer
	loaded    uint32 // the call of Load that has it from the record; 0: it is known otherwise
	pod       *v1.Pod
	final     func() *v1.Pod // returns the pod to send
	told      []func(error)  // are told once how the debt ended
	expires   time.Time      // of a mark; zero: never
	due       time.Time      // of the next call
	number    uint64         // in the order in which the debts arose
	flight    *flight        // the call under way; nil: none is
}

// sent reports whether the API server may have heard of the debt.
func (d *debt) sent() bool { return d.calls > 0 }

func (d *debt) tell(err error) {
	for _, told := range d.told {
		told(err)
	}
	d.told = nil
}

// requests returns how many requests a call makes. A restoration reads the pod first, and the final
// status of a static pod its mirror pod. A pod that is to be deleted is deleted after its status.
func (d *debt) requests() int {
	if d.kind == KindRestoration || d.kind == KindStatus && (d.pod.DeletionTimestamp != nil || staticpod.IsOrMirrors(d.pod)) {
		return 2
	}
	return 1
}

func (d *debt) expired(now time.Time) bool { return !d.expires.IsZero() && !d.expires.After(now) }

// failed records that a call has failed, and when the next one is due. A call without an answer
// has taken so long that the pause after it stays short.
func (d *debt) failed(f *flight, now time.Time) {
	pause := max(min(pauseFirst<<min(d.calls-1, 10), pauseMost), f.limited)
	switch {
	case f.unwanted:
		pause = 0
	case f.unanswered:
		pause, d.cut = pauseFirst, min(d.cut+1, math.MaxUint8-1)
	}
	d.due = now.Add(pause)
}
