package statuses

import v1 "k8s.io/api/core/v1"

// Withdraw takes back the final status of a pod that is to be started again, as if it were
// acknowledged. One that is being sent is cancelled, and is withdrawn by a later call.
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
		q.forget(i)
		i.end(nil)
		q.wakeAll()
	}
}
