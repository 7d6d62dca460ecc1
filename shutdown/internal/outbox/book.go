package outbox

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// book holds the debts, one of a kind for each pod, and the order in which they are sent. The
// mutex of the outbox guards it.
type book struct {
	calls    [kinds]func(context.Context, *v1.Pod) error // nil: there are no debts of the kind
	debts    [kinds]map[types.UID]*debt
	queues   [2][kinds][]*debt // first those that were not tried since they were owed last
	held     [kinds]bool       // the kinds that are not sent now
	arisen   uint64            // the number of debts so far
	failure  error             // the last one of a final status
	loads    uint32
	settled  uint64               // the number of final statuses that have ended
	unstored map[types.UID]uint64 // final statuses whose end is not on record, by the value of settled then; nil: nothing is stored
}

func newBook(o Options) *book {
	b := &book{calls: [kinds]func(context.Context, *v1.Pod) error{o.FlushPod, o.MarkNotReady, o.RestoreReadiness}}
	if o.Changed != nil {
		b.unstored = map[types.UID]uint64{}
	}
	for k := range b.debts {
		b.debts[k] = map[types.UID]*debt{}
	}
	return b
}

func (b *book) find(k Kind, pod *v1.Pod) *debt { return b.debts[k][kills.Key(pod)] }

func (b *book) owesStatus(pod *v1.Pod) bool { return b.find(KindStatus, pod) != nil }

// restores reports whether a mark that was sent may have to be restored.
func (b *book) restores() bool { return b.calls[KindRestoration] != nil }

// debtOf returns the debt of a kind for a pod, and makes it if there is none. A debt that was
// withdrawn while its call is under way is owed again.
func (b *book) debtOf(k Kind, pod *v1.Pod) *debt {
	d := b.find(k, pod)
	if d == nil {
		b.arisen++
		d = &debt{kind: k, number: b.arisen}
		b.debts[k][kills.Key(pod)] = d
	}
	d.pod, d.final = pod, func() *v1.Pod { return pod }
	d.withdrawn, d.loaded = false, 0
	return d
}

// enqueue has a debt sent, unless that is under way. A final status withdraws the mark of the pod
// and its restoration.
func (b *book) enqueue(d *debt) {
	if !d.queued && d.flight == nil {
		d.queued, d.due = true, time.Time{}
		b.queues[0][d.kind] = append(b.queues[0][d.kind], d)
	}
	if d.kind == KindStatus {
		b.withdraw(b.find(KindMark, d.pod))
		b.withdraw(b.find(KindRestoration, d.pod))
	}
}

// withdraw takes a debt back; nil is ignored. If a call is under way, it is ended, and the debt
// stays until it has returned.
func (b *book) withdraw(d *debt) {
	switch {
	case d == nil:
	case d.flight == nil:
		d.withdrawn = true
		b.end(d, errWithdrawn)
	default:
		d.withdrawn = true
		d.tell(errWithdrawn)
		d.flight.end(errWithdrawn)
	}
}

// end ends a debt, unless it has ended before. A mark that was sent stays, because it may have to
// be restored.
func (b *book) end(d *debt, err error) {
	key := kills.Key(d.pod)
	if b.debts[d.kind][key] != d {
		return
	}
	d.tell(err)
	if d.kind == KindMark && d.sent() && !d.withdrawn && b.restores() {
		return
	}
	delete(b.debts[d.kind], key)
	if d.kind == KindStatus && b.unstored != nil {
		b.settled++
		b.unstored[key] = b.settled
	}
}

// landed records the result of a call. It returns true if no other call follows.
func (b *book) landed(f *flight, now time.Time) (over bool) {
	d := f.debt
	d.flight = nil
	if d.kind == KindStatus && f.err != nil && !f.unwanted {
		b.failure = fmt.Errorf("pod %s/%s: %w", f.pod.Namespace, f.pod.Name, f.err)
	}
	if f.err != nil && !d.withdrawn {
		if d.failed(f, now); !d.expired(d.due) {
			d.queued = true
			b.queues[1][d.kind] = append(b.queues[1][d.kind], d)
			return false
		}
	}
	b.end(d, f.err)
	return true
}

// restore owes the restoration of a pod's mark, unless the final status of the pod is owed.
func (b *book) restore(pod *v1.Pod) {
	if b.restores() && !b.owesStatus(pod) {
		b.enqueue(b.debtOf(KindRestoration, pod))
	}
}

// endMarks is [Outbox.Restore].
func (b *book) endMarks(livesOn func(*v1.Pod) bool) {
	b.held[KindMark], b.held[KindRestoration] = true, false
	before := b.all()
	for _, d := range b.debts[KindMark] {
		b.withdraw(d)
	}
	for _, d := range before {
		switch lives := livesOn(d.pod); {
		case d.kind == KindMark && lives:
			b.restore(d.pod)
		case !lives:
			b.withdraw(b.find(KindRestoration, d.pod))
		default:
		}
	}
}

// load is [Outbox.Load].
func (b *book) load(debts iter.Seq2[Kind, *v1.Pod]) {
	b.loads++
	for k, pod := range debts {
		b.loadOne(min(k, KindMark), pod)
	}
	for k, of := range b.debts {
		for key, d := range of {
			if d.loaded == 0 || d.loaded == b.loads {
				continue
			}
			if b.withdraw(d); k == int(KindStatus) {
				delete(b.unstored, key) // it is not on record, which needs no write
			}
		}
	}
}

// loadOne adds a debt of the record, unless it cannot be owed.
func (b *book) loadOne(k Kind, pod *v1.Pod) {
	_, settled := b.unstored[kills.Key(pod)]
	if k == KindStatus && (settled || b.calls[k] == nil) || k == KindMark && (!b.restores() || b.owesStatus(pod)) {
		return
	}
	d := b.find(k, pod)
	if d == nil || d.loaded != 0 && !d.withdrawn {
		d = b.debtOf(k, pod)
		d.loaded = b.loads
	}
	if k == KindMark {
		d.calls = max(d.calls, 1)
		return
	}
	b.enqueue(d)
}

// next removes and returns the debt to send next, and nil if none is due. Then soonest is the
// time of the next one, zero if that is unknown. What was not tried comes first, so that a pod that
// is refused for ever delays no other.
func (b *book) next(now time.Time) (due *debt, soonest time.Time) {
	for tried := range b.queues {
		for k := range b.queues[tried] {
			queue := &b.queues[tried][k]
			for n := 0; n < len(*queue) && !b.held[k]; {
				d := (*queue)[n]
				over, early := d.withdrawn || d.expired(now), d.due.After(now)
				if !over && (early || b.blocked(d)) {
					if early {
						soonest = times.Earlier(soonest, d.due)
					}
					n++
					continue
				}
				d.queued = false
				*queue = slices.Delete(*queue, n, n+1)
				if !over {
					return d, time.Time{}
				}
				b.end(d, call.ErrTimeSpent)
			}
		}
	}
	return nil, soonest
}

// blocked reports whether the opposite of a debt is being sent: the later one of a mark and its
// restoration must reach the API server last.
func (b *book) blocked(d *debt) bool {
	if d.kind == KindStatus {
		return false
	}
	opposite := b.find(KindMark+KindRestoration-d.kind, d.pod)
	return opposite != nil && opposite.flight != nil
}

// all returns copies of the debts for the record, in the order in which they arose: of the marks
// only those that the API server may have.
func (b *book) all() []debt {
	var all []debt
	for _, of := range b.debts {
		for _, d := range of {
			if !d.withdrawn && (d.kind != KindMark || d.sent()) {
				all = append(all, *d)
			}
		}
	}
	slices.SortFunc(all, func(a, b debt) int { return cmp.Compare(a.number, b.number) })
	return all
}
