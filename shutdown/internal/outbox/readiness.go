package outbox

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

// Mark marks a pod as not ready. The future completes with nil when the API server has
// acknowledged the mark, and with an error when it is not sent any more: the error of the last
// call, or [call.ErrTimeSpent] without one, if its time is over. If the mark is not sent by the
// time until, it is withdrawn. If it is, answered or not, it is not sent again after that time, and
// the outbox remembers that it may have to be restored. After Restore marks are withdrawn at once,
// until Suspend: the drain of a cancelled shutdown may still be about to mark.
func (o *Outbox) Mark(pod *v1.Pod, until time.Time) *call.Future[struct{}] {
	future, complete := call.NewFuture[struct{}]()
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.book.calls[KindMark] == nil:
		complete(struct{}{}, nil)
	case o.book.held[KindMark] || o.book.owesStatus(pod):
		complete(struct{}{}, errWithdrawn)
	default:
		d := o.book.debtOf(KindMark, pod)
		d.expires = until
		d.told = append(d.told, func(err error) { complete(struct{}{}, err) })
		o.book.enqueue(d)
		o.fill()
	}
	return future
}

// Restore is called when a shutdown was cancelled. It withdraws all marks and ends their calls. If
// a mark was sent, answered or not, the restoration is owed from now on, without a limit of time,
// if livesOn accepts the pod. Restorations that were owed before are sent again if livesOn accepts
// their pods, and withdrawn otherwise. livesOn is called with a lock held: it must not block or
// use the outbox.
func (o *Outbox) Restore(livesOn func(*v1.Pod) bool) {
	o.mu.Lock()
	o.book.endMarks(livesOn)
	o.send()
}

// RestoreMarked has pods restored whose marks are known otherwise, for example by the reason of
// their Ready condition. A pod whose final status is owed is left out.
func (o *Outbox) RestoreMarked(pods []*v1.Pod) {
	o.mu.Lock()
	for _, pod := range pods {
		o.book.restore(pod)
	}
	o.send()
}

// Suspend is called when a shutdown begins. Restorations remain owed, but are not sent until
// Restore; calls that are under way for them are ended.
func (o *Outbox) Suspend() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.book.held[KindMark], o.book.held[KindRestoration] = false, true
	for _, d := range o.book.debts[KindRestoration] {
		if d.flight != nil {
			d.flight.end(errWithdrawn)
		}
	}
}
