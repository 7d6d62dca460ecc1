package outbox

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

// Mark is a mark that a pod is not ready. The future completes with nil when the API server has
// acknowledged the mark, and with an error when it is not sent any more: the error of the last
// call, or [call.ErrTimeSpent] without one, if its time is over.
type Mark struct {
	*call.Future[struct{}]
}

// Mark marks a pod as not ready. If the mark is not sent by the time until, it is withdrawn. If it
// is, answered or not, it is not sent again after that time, and the outbox remembers that it may
// have to be restored. After Restore marks are withdrawn at once, until Suspend: the drain of a
// cancelled shutdown may still be about to mark.
func (o *Outbox) Mark(pod *v1.Pod, until time.Time) *Mark {
	future, complete := call.NewFuture[struct{}]()
	told := func(err error) { complete(struct{}{}, err) }
	if o.calls[KindMark] == nil {
		told(nil)
		return &Mark{future}
	}
	o.mu.Lock()
	if o.book.held[KindMark] || o.book.owesStatus(pod) {
		o.mu.Unlock()
		told(errWithdrawn)
		return &Mark{future}
	}
	d := o.book.debtOf(KindMark, pod)
	d.expires = until
	d.addTold(told)
	o.book.enqueue(d)
	o.mu.Unlock()
	o.sender.start()
	return &Mark{future}
}

// Restore is called when a shutdown was cancelled. It withdraws all marks and ends their calls. If
// a mark was sent, answered or not, the restoration is owed from now on, without a limit of time,
// if livesOn accepts the pod. Restorations that were owed before are sent again if livesOn accepts
// their pods, and withdrawn otherwise. livesOn is called without a lock held.
func (o *Outbox) Restore(livesOn func(*v1.Pod) bool) {
	o.mu.Lock()
	o.book.held[KindMark] = true
	asked := o.book.endMarks()
	pods := make([]*v1.Pod, len(asked))
	for n, d := range asked {
		pods[n] = d.pod
	}
	o.mu.Unlock()
	lives := make([]bool, len(asked))
	for n, pod := range pods {
		lives[n] = livesOn(pod)
	}
	o.mu.Lock()
	for n, d := range asked {
		o.book.spare(d, lives[n])
	}
	o.book.held[KindRestoration] = false
	o.mu.Unlock()
	o.sender.start()
	o.changed()
}

// RestoreMarked has pods restored whose marks are known otherwise, for example by the reason of
// their Ready condition. A pod whose final status is owed is left out.
func (o *Outbox) RestoreMarked(pods []*v1.Pod) {
	o.mu.Lock()
	for _, pod := range pods {
		o.book.restore(pod)
	}
	o.mu.Unlock()
	o.sender.start()
	o.changed()
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
