package statuses

import v1 "k8s.io/api/core/v1"

// Withdraw removes the final status of a pod that is to be started again, as if it were
// acknowledged. A status that is being sent is cancelled; a later call withdraws it.
func (q *Queue) Withdraw(pod *v1.Pod) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := q.statuses[keyOf(pod)]
	switch {
	case i == nil:
	case q.inFlight[status][i]:
		i.cancel(errTooLate)
	default:
		q.backlog.remove(i)
		q.removeAcknowledged(i)
		i.done(nil)
		q.wakeWaiters()
	}
}
