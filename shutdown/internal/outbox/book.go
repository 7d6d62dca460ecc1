package outbox

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// book holds the debts, one of a kind for each pod, and the order in which they are sent. The
// mutex of the outbox guards it.
type book struct {
	debts    [kinds]map[types.UID]*debt
	fresh    [kinds][]*debt // were never tried, or not since they were owed again
	failed   [kinds][]*debt // in the order of their failures
	restores bool           // a mark that was sent may have to be restored
	arisen   uint64         // the number of debts so far
	held     [kinds]bool    // the kinds that are not sent now
}

func newBook(restores bool) *book {
	b := &book{restores: restores}
	for k := range b.debts {
		b.debts[k] = map[types.UID]*debt{}
	}
	return b
}

// find returns the debt of a kind for a pod; nil if there is none.
func (b *book) find(k Kind, pod *v1.Pod) *debt { return b.debts[k][kills.Key(pod)] }

// debtOf returns the debt of a kind for a pod, and makes it if there is none. A debt that was
// withdrawn while its call is under way is owed again.
func (b *book) debtOf(k Kind, pod *v1.Pod) *debt {
	d := b.find(k, pod)
	if d == nil || d.settling {
		b.arisen++
		d = &debt{kind: k, number: b.arisen}
		b.debts[k][kills.Key(pod)] = d
	}
	d.pod, d.withdrawn, d.loaded = pod, false, false
	return d
}

// enqueue has a debt sent, unless that is under way.
func (b *book) enqueue(d *debt) {
	if !d.queued && d.flight == nil {
		d.queued, d.due = true, time.Time{}
		b.fresh[d.kind] = append(b.fresh[d.kind], d)
	}
}

// retry has a debt sent again when it is due.
func (b *book) retry(d *debt) {
	d.queued = true
	b.failed[d.kind] = append(b.failed[d.kind], d)
}

// remove removes a debt. Lists that have it drop it later.
func (b *book) remove(d *debt) {
	d.withdrawn = true
	if b.find(d.kind, d.pod) == d {
		delete(b.debts[d.kind], kills.Key(d.pod))
	}
}

// withdraw takes a debt back; nil is ignored. If a call is under way, it is ended, and the debt
// stays until it has returned.
func (b *book) withdraw(d *debt) {
	if d == nil {
		return
	}
	d.withdrawn = true
	d.tell(errWithdrawn)
	if d.flight != nil {
		d.flight.end(errWithdrawn)
		return
	}
	b.remove(d)
}

// withdrawReadiness withdraws the mark of a pod and its restoration.
func (b *book) withdrawReadiness(pod *v1.Pod) {
	b.withdraw(b.find(KindMark, pod))
	b.withdraw(b.find(KindRestoration, pod))
}

// restore owes the restoration of a pod's mark, unless the final status of the pod is owed.
func (b *book) restore(pod *v1.Pod) {
	if b.restores && !b.owesStatus(pod) {
		b.enqueue(b.debtOf(KindRestoration, pod))
	}
}

// endMarks withdraws the marks that were not sent. It returns the others and the restorations.
func (b *book) endMarks() (sent []*debt) {
	for _, d := range b.debts[KindMark] {
		if !d.sent() {
			b.withdraw(d)
		}
	}
	return slices.DeleteFunc(b.all(), func(d *debt) bool { return d.kind == KindStatus })
}

// spare withdraws a mark that endMarks has returned, and owes its restoration if the pod lives on.
// It withdraws a restoration if the pod does not.
func (b *book) spare(d *debt, livesOn bool) {
	if b.find(d.kind, d.pod) != d {
		return // it is not owed any more
	}
	if d.kind == KindMark || !livesOn {
		b.withdraw(d)
	}
	if d.kind == KindMark && livesOn {
		b.restore(d.pod)
	}
}

// load adds a debt of the record; it returns nil for one that cannot be owed. A mark was sent.
func (b *book) load(k Kind, pod *v1.Pod) *debt {
	if k >= kinds || k != KindStatus && (!b.restores || b.owesStatus(pod)) {
		return nil
	}
	d := b.find(k, pod)
	switch {
	case d == nil:
		d = b.debtOf(k, pod)
		d.loaded = true
	case d.loaded:
		d.pod = pod
	}
	if k == KindMark {
		d.calls = max(d.calls, 1)
		return d
	}
	if b.enqueue(d); k == KindStatus {
		b.withdrawReadiness(pod)
	}
	return d
}

// keepLoaded withdraws the debts of the record but for some.
func (b *book) keepLoaded(some map[*debt]bool) {
	for k := range b.debts {
		for _, d := range b.debts[k] {
			if d.loaded && !some[d] {
				b.withdraw(d)
			}
		}
	}
}

// owesStatus reports whether the final status of a pod is owed.
func (b *book) owesStatus(pod *v1.Pod) bool { return b.find(KindStatus, pod) != nil }

// next removes and returns the debt to send next, and nil if none is due. Then soonest is the
// time of the next one, zero if that is unknown. Fresh debts come first, so that a pod that is
// refused for ever delays no other.
func (b *book) next(now time.Time) (due *debt, soonest time.Time) {
	for _, lists := range []*[kinds][]*debt{&b.fresh, &b.failed} {
		for k := range lists {
			if b.held[k] {
				continue
			}
			for n := 0; n < len(lists[k]); {
				d := lists[k][n]
				switch {
				case d.withdrawn:
					drop(&lists[k], n)
				case d.expired(now):
					drop(&lists[k], n)
					b.expire(d, call.ErrTimeSpent)
				case d.due.After(now):
					if soonest.IsZero() || d.due.Before(soonest) {
						soonest = d.due
					}
					n++
				case b.blocked(d):
					n++
				default:
					drop(&lists[k], n)
					return d, time.Time{}
				}
			}
		}
	}
	return nil, soonest
}

// drop removes the n-th debt of a list. The first one, which it mostly is, costs no copying.
func drop(list *[]*debt, n int) {
	(*list)[n].queued = false
	if n > 0 {
		*list = slices.Delete(*list, n, n+1)
		return
	}
	(*list)[0] = nil
	*list = (*list)[1:]
}

// blocked reports whether the opposite of a debt is being sent: the later one of a mark and its
// restoration must reach the API server last.
func (b *book) blocked(d *debt) bool {
	var opposite *debt
	switch d.kind {
	case KindMark:
		opposite = b.find(KindRestoration, d.pod)
	case KindRestoration:
		opposite = b.find(KindMark, d.pod)
	default:
	}
	return opposite != nil && opposite.flight != nil
}

// expire ends a mark that is acknowledged, or too late. If it was sent it stays, because it may
// have to be restored.
func (b *book) expire(d *debt, err error) {
	d.tell(err)
	if !d.sent() || !b.restores {
		b.remove(d)
	}
}

// landed records the result of a call.
func (b *book) landed(f *flight, now time.Time) {
	d := f.debt
	d.flight = nil
	switch {
	case d.withdrawn, f.err == nil && d.kind == KindRestoration:
		b.remove(d)
	case f.err == nil:
		b.expire(d, nil)
	default:
		if d.failed(f, now); d.expired(d.due) {
			b.expire(d, f.err)
			return
		}
		b.retry(d)
	}
}

// all returns the debts for the record, in the order in which they arose: those that are not
// withdrawn, and of the marks those that the API server may have.
func (b *book) all() []*debt {
	all := make([]*debt, 0, len(b.debts[KindStatus])+len(b.debts[KindMark])+len(b.debts[KindRestoration]))
	for k := range b.debts {
		for _, d := range b.debts[k] {
			if !d.withdrawn && (d.kind != KindMark || d.sent()) {
				all = append(all, d)
			}
		}
	}
	slices.SortFunc(all, func(a, b *debt) int { return cmp.Compare(a.number, b.number) })
	return all
}
