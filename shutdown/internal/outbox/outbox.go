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
	"fmt"
	"iter"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// Outbox owns what the API server must still be told. Make one with [New]. All methods may be
// called concurrently. Only Await, AwaitAll and [Publication.Await] block.
type Outbox struct {
	changed func()
	calls   [kinds]func(context.Context, *v1.Pod) error
	stores  bool
	server  *server
	sender  *sender
	node    *nodeState

	mu       sync.Mutex // guards all below
	book     *book
	lastErr  error                // of a final status
	settled  uint64               // the number of final statuses that have ended
	unstored map[types.UID]uint64 // final statuses whose end is not on record, by the value of settled then
}

// New returns an outbox that is not open. Debts may be added to it. It starts no goroutine.
func New(o Options) *Outbox {
	s := &server{}
	box := &Outbox{
		changed: o.Changed, stores: o.Changed != nil,
		calls:  [kinds]func(context.Context, *v1.Pod) error{o.FlushPod, o.MarkNotReady, o.RestoreReadiness},
		server: s, book: newBook(o.RestoreReadiness != nil), unstored: map[types.UID]uint64{},
	}
	if !box.stores {
		box.changed = func() {}
	}
	box.sender = &sender{server: s, take: box.take, deliver: box.deliver, landed: box.landed, flying: map[*flight]bool{}}
	box.node = newNodeState(o, s, box.sender.acknowledged)
	return box
}

// Open lets the outbox send until leave is called. Several users may have it open; it sends until
// the last one has left, and may be opened again later. ctx gives the logger, and its end does
// not matter. The last leave ends the contexts of the calls and returns their group, some of which
// may still run; it returns nil to the others.
func (o *Outbox) Open(ctx context.Context) (leave func() *call.Group) {
	op := o.sender.join(ctx)
	o.node.join(op)
	return sync.OnceValue(func() *call.Group {
		if !o.sender.leave(op) {
			return nil
		}
		o.node.leave(op)
		return &op.calls
	})
}

// Publish has a node state published, in place of any before it. A state is tried again until it
// is accepted or superseded, with a pause that doubles from 100 ms to 30 s.
func (o *Outbox) Publish(state any) *Publication { return o.node.owe(state) }

// Owe has the final status of a pod sent, and withdraws the mark of the pod and its restoration.
// final returns the pod with its final status, for each call and each record; nil stands for pod
// itself. It may be called at any time, in any goroutine. acknowledged is called when the API
// server has acknowledged the status, or it was withdrawn; nil: nothing is called. A status that
// is owed already is sent once, with the newer pod, and both are told.
func (o *Outbox) Owe(pod *v1.Pod, final func() *v1.Pod, acknowledged func()) {
	if o.calls[KindStatus] == nil {
		return
	}
	o.mu.Lock()
	d := o.book.debtOf(KindStatus, pod)
	d.final = final
	if acknowledged != nil {
		d.addTold(func(error) { acknowledged() })
	}
	o.book.withdrawReadiness(pod)
	o.book.enqueue(d)
	o.mu.Unlock()
	o.sender.start()
	o.changed()
}

// Owes reports whether the final status of a pod is owed, or its acknowledgement is not on
// record. Such a pod must not be started again under its UID, because its status would be false,
// sent by this agent or by the next one. A pod without a UID is known by its namespace and name.
func (o *Outbox) Owes(pod *v1.Pod) bool {
	if pod == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	_, unstored := o.unstored[kills.Key(pod)]
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
	if pod == nil || !staticpod.IsOrMirrors(pod) {
		return
	}
	o.mu.Lock()
	d := o.book.find(KindStatus, pod)
	if d == nil || d.settling {
		o.mu.Unlock()
		return
	}
	d.withdrawn = true
	if d.flight != nil {
		d.flight.end(errWithdrawn)
		o.mu.Unlock()
		return
	}
	o.endDebt(d)
	o.server.wake()
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
	return o.lastErr
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

// take is the take of the sender.
func (o *Outbox) take(ctx context.Context) (*flight, time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	d, soonest := o.book.next(now)
	if d == nil {
		return nil, soonest
	}
	f := newFlight(ctx, d, now, o.server.limit(d.cut))
	d.begins(f)
	return f, time.Time{}
}

// deliver makes a call. A mark belongs on record as soon as the API server may have it.
func (o *Outbox) deliver(f *flight) error {
	if f.debt.kind == KindMark {
		o.changed()
	}
	return o.calls[f.debt.kind](f.ctx, f.content().DeepCopy())
}

// landed handles the result of a call.
func (o *Outbox) landed(f *flight) {
	d := f.debt
	o.mu.Lock()
	if d.kind == KindStatus && (f.err == nil || d.withdrawn) {
		o.endDebt(d)
		return
	}
	if d.kind == KindStatus && !f.isUnwanted() {
		o.lastErr = fmt.Errorf("pod %s/%s: %w", f.pod.Namespace, f.pod.Name, f.err)
	}
	o.book.landed(f, time.Now())
	o.mu.Unlock()
	if f.err == nil {
		o.changed()
	}
}

// endDebt ends a final status that is acknowledged or withdrawn, which is owed until those who are
// told have returned. The mutex is held, and endDebt unlocks it.
func (o *Outbox) endDebt(d *debt) {
	told := d.told
	d.told, d.settling = nil, true
	o.mu.Unlock()
	if told != nil {
		told(nil)
	}
	o.mu.Lock()
	o.book.remove(d)
	if o.stores {
		o.settled++
		o.unstored[kills.Key(d.pod)] = o.settled
	}
	o.mu.Unlock()
	o.changed()
}

// Debts yields the debts for a write to the record that begins now, in the order in which they
// arose: final statuses, marks that the API server may have, and restorations. stored must be
// called when the write is done, or has failed, or nothing is ever written: final statuses that were
// settled before are then no longer owed.
func (o *Outbox) Debts() (debts iter.Seq2[Kind, *v1.Pod], stored func()) {
	type entry struct {
		kind    Kind
		content func() *v1.Pod
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	all, settled := o.book.all(), o.settled
	entries := make([]entry, len(all))
	for n, d := range all {
		entries[n] = entry{d.kind, d.content()}
	}
	debts = func(yield func(Kind, *v1.Pod) bool) {
		for _, e := range entries {
			if !yield(e.kind, e.content()) {
				return
			}
		}
	}
	return debts, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		for key, number := range o.unstored {
			if number <= settled {
				delete(o.unstored, key)
			}
		}
	}
}

// Load takes over the debts of a former agent from the record, in place of those that an earlier
// Load has given: what the former agent has paid meanwhile is no longer owed. Debts that this
// agent has added or settled itself stay as they are. The status of a pod is pod itself. A mark
// was sent, so that Restore may restore it.
func (o *Outbox) Load(debts iter.Seq2[Kind, *v1.Pod]) {
	type entry struct {
		kind Kind
		pod  *v1.Pod
	}
	var entries []entry
	for kind, pod := range debts {
		entries = append(entries, entry{kind, pod})
	}
	o.mu.Lock()
	loaded := map[*debt]bool{}
	for _, e := range entries {
		_, settled := o.unstored[kills.Key(e.pod)]
		if e.kind != KindStatus || o.calls[KindStatus] != nil && !settled {
			loaded[o.book.load(e.kind, e.pod)] = true
		}
	}
	o.book.keepLoaded(loaded)
	o.mu.Unlock()
	o.sender.start()
	o.server.wake()
}
