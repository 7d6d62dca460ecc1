// Package outbox owns what the API server must still be told of a node and its pods: the node's
// state, marks that a pod is not ready, their restoration, and final statuses.
//
// An [Outbox] owes each such debt from the moment it arises until the API server has acknowledged
// it or it is withdrawn. It pays while it is open, and outlives drains and shutdowns; for the next
// agent it lists the debts that belong on record. It makes ten calls at a time for pods: final
// statuses before marks before restorations, and what has failed after the rest. Each call is one
// attempt. A failed one is made again, with a pause that doubles from 100 ms to 1 s for each pod,
// or for as long as the server asks. After ten failures in a row, or when the server answers that
// it gets too many requests or answers nothing, the outbox starts one call at a time, with such a
// pause between two.
//
// A call without an answer is ended after 2.25 s, or what follows from the time that answers take,
// and made again. If others were answered meanwhile it was lost, which says nothing about the
// server; otherwise the next calls get more time.
//
// The package does not know the drain, its timetable or the files. It calls the embedder's code
// through package call: a call that panics or ends its goroutine has failed, and one that ignores
// the end of its context counts as one of the ten for a second more.
package outbox

import (
	"context"
	"iter"
	"maps"
	"math"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// Options are the functions of an [Outbox]. They are called without a lock held.
type Options struct {
	// FlushPod, MarkNotReady and RestoreReadiness make one attempt to send a final status, a mark,
	// or the restoration of a mark. The pod is a copy. Nil means that the API server has accepted
	// it, or that there is nothing to do for this pod any more. A function that is nil means that
	// there are no debts of its kind.
	FlushPod, MarkNotReady, RestoreReadiness func(ctx context.Context, pod *v1.Pod) error
	// Publish makes one attempt to publish a node state; there is one call at a time. Nil means
	// that every state counts as published.
	Publish func(ctx context.Context, state any) error
	// PublishAttempt is how long the wait for a publication takes. One call of Publish ends 20 ms
	// earlier, so that the one who waits sees its error. Up to 40 ms count as 5 s.
	PublishAttempt time.Duration
	// Changed is called when Debts has something else to return than before. It must not block.
	// Nil means that nothing is stored: then nobody waits for acknowledgements to be on record.
	Changed func()
}

// Outbox owns what the API server must still be told. Make one with [New]. All methods may be
// called concurrently. Only Await, AwaitAll and [Publication.Await] block.
type Outbox struct{ sender }

// New returns an outbox that is not open. Debts may be added to it. It starts no goroutine.
func New(o Options) *Outbox {
	box := &Outbox{sender{
		changed: o.Changed, publish: o.Publish, publishTime: o.PublishAttempt - publishLead,
		book: newBook(o), flying: map[*flight]bool{},
	}}
	if box.changed == nil {
		box.changed = func() {}
	}
	if box.publishTime <= publishLead {
		box.publishTime = publishTimeAlone
	}
	box.server = &server{mu: &box.mu, answered: make(chan struct{})}
	return box
}

// Open lets the outbox send until leave is called. Several users may have it open; it sends until
// the last one has left, and may be opened again later. ctx gives the logger, and its end does
// not matter. The last leave ends the contexts of the calls and returns their group, some of which
// may still run; it returns nil to the others.
func (o *Outbox) Open(ctx context.Context) (leave func() *call.Group) {
	op := o.join(ctx)
	return sync.OnceValue(func() *call.Group { return o.leave(op) })
}

// Publish has a node state published, in place of any before it. A state is tried again until it
// is accepted or superseded, with a pause that doubles from 100 ms to 30 s.
func (o *Outbox) Publish(state any) *Publication {
	p := &Publication{StartedAt: time.Now(), state: state, server: o.server, answers: o.server.answers.Load(), pause: publishPauseFirst}
	p.done, p.complete = call.NewFuture[struct{}]()
	if o.publish == nil {
		p.complete(struct{}{}, nil)
		return p
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state != nil {
		o.state.complete(struct{}{}, errSuperseded)
	}
	if o.publishing != nil {
		o.publishing(errSuperseded)
	}
	o.state = p
	o.fill()
	return p
}

// Owe has the final status of a pod sent, and withdraws the mark of the pod and its restoration.
// final returns the pod with its final status, for each call and each record; nil stands for pod
// itself. It may be called at any time, in any goroutine. acknowledged is called when the API
// server has acknowledged the status, or it was withdrawn, with a lock held: it must not block or
// use the outbox; nil: nothing is called. A status that is owed already is sent once, with the
// newer pod, and both are told.
func (o *Outbox) Owe(pod *v1.Pod, final func() *v1.Pod, acknowledged func()) {
	if o.book.calls[KindStatus] == nil {
		return
	}
	o.mu.Lock()
	d := o.book.debtOf(KindStatus, pod)
	if final != nil {
		d.final = final
	}
	if acknowledged != nil {
		d.told = append(d.told, func(error) { acknowledged() })
	}
	o.book.enqueue(d)
	o.send()
}

// send sends what has become due by a change of the debts. The mutex is held, and send unlocks it.
func (o *Outbox) send() {
	o.fill()
	o.mu.Unlock()
	o.changed()
}

// Owes reports whether the final status of a pod is owed, or its acknowledgement is not on
// record. Such a pod must not be started again under its UID, because its status would be false,
// sent by this agent or by the next one. A pod without a UID is known by its namespace and name.
func (o *Outbox) Owes(pod *v1.Pod) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, unstored := o.book.unstored[kills.Key(pod)]
	return unstored || o.book.owesStatus(pod)
}

// Unpaid reports whether the API server has not acknowledged the final status of a pod, on record or
// not.
func (o *Outbox) Unpaid(pod *v1.Pod) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.book.owesStatus(pod)
}

// Withdraw withdraws the final status of a static pod that is to be started again, as if it were
// acknowledged. If it is being sent the call is ended, and the status is owed until that has
// returned. Other pods are not started again under their UID; for them Withdraw does nothing.
func (o *Outbox) Withdraw(pod *v1.Pod) {
	if !staticpod.IsOrMirrors(pod) {
		return
	}
	o.mu.Lock()
	o.book.withdraw(o.book.find(KindStatus, pod))
	o.server.wake()
	o.send()
}

// Unacknowledged returns the number of final statuses that are owed.
func (o *Outbox) Unacknowledged() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.book.debts[KindStatus])
}

// Failure returns the last error of a final status; nil if none has failed.
func (o *Outbox) Failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.book.failure
}

// AwaitAll is Await for all final statuses.
func (o *Outbox) AwaitAll(ctx context.Context, until time.Time, reserve time.Duration) bool {
	return o.Await(ctx, func() bool { return o.Unacknowledged() > 0 }, until, reserve)
}

// Await waits until pending returns false, which it calls again after each acknowledgement. It
// gives up at a time, at the end of ctx, or when the server does not answer: 2.5 s after the last
// acknowledgement or the beginning of the wait, whichever is later. If the server has lost calls
// within the last minute while it answered others, it gets the time of three calls instead, which
// is 3.6 s or more. Earlier waits in vain since the last acknowledgement shorten this time by what
// they took, by 2.5 s at most and down to reserve. Await returns false if pending still returns
// true.
func (o *Outbox) Await(ctx context.Context, pending func() bool, until time.Time, reserve time.Duration) bool {
	return o.server.await(ctx, pending, until, reserve)
}

// Debts yields the debts for a write to the record that begins now, in the order in which they
// arose: final statuses, marks that the API server may have, and restorations. stored must be
// called when the write is done, or has failed, or nothing is ever written: final statuses that were
// settled before are then no longer owed.
func (o *Outbox) Debts() (debts iter.Seq2[Kind, *v1.Pod], stored func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all, settled := o.book.all(), o.book.settled
	return func(yield func(Kind, *v1.Pod) bool) {
		for _, d := range all {
			if !yield(d.kind, d.final()) {
				return
			}
		}
	}, func() { o.forget(settled) }
}

// DropUnstored is for an agent that stores nothing: final statuses that were settled so far are no
// longer owed.
func (o *Outbox) DropUnstored() { o.forget(math.MaxUint64) }

// forget has the final statuses that were settled up to a number no longer owed.
func (o *Outbox) forget(settled uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.book.unstored, func(_ types.UID, number uint64) bool { return number <= settled })
}

// Load takes over the debts of a former agent from the record, in place of those that an earlier
// Load has given: what the former agent has paid meanwhile is no longer owed. Debts that this
// agent has added or settled itself stay as they are. The status of a pod is pod itself. What is
// no final status is a mark that was sent, so that Restore may restore it. The debts are read with
// a lock held.
func (o *Outbox) Load(debts iter.Seq2[Kind, *v1.Pod]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.book.load(debts)
	o.fill()
	o.server.wake()
}
