package shutdown

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
	"github.com/kubegrace/kubegrace/shutdown/internal/store"
)

// account is what one shutdown, or one TerminateAll, answers for: whom it has killed, what has
// failed, and what becomes of the statuses. It makes the report. All methods may be called
// concurrently.
type account struct {
	kills   *kills.Account
	flushes bool               // final statuses are sent to the API server
	marks   bool               // pods are marked not ready before they are signalled
	owed    func(*v1.Pod) bool // the outbox owes the final status of a pod, on record or not

	mu       sync.Mutex // guards all below
	outline  Report     // without pods
	policy   PodPolicy
	closed   bool                 // who has not ended is left to others, also after the next boot
	again    bool                 // it drains again after an end
	finished *call.Future[Report] // completes when all whom it has killed have ended, or it is cancelled
	complete func(Report, error)
}

// newAccount returns an account that begins at a time.
func newAccount(began time.Time, origin string, l *ledger) *account {
	a := &account{kills: kills.NewAccount(began, l.unended.find), flushes: l.flushes(), marks: l.marks(), owed: l.outbox.Unpaid}
	a.kills.Join(l.unended.underWay())
	a.outline.Started, a.outline.Origin = began, origin
	a.finished, a.complete = call.NewFuture[Report]()
	return a
}

// name sets what the report calls the shutdown; "" leaves it as it is.
func (a *account) name(kind Kind, origin string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.outline.Kind, a.outline.Origin = cmp.Or(kind, a.outline.Kind), cmp.Or(origin, a.outline.Origin)
}

// addErr adds an error to the report that is logged elsewhere.
func (a *account) addErr(err error) {
	text := textOf(err)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.outline.Errors = append(slices.Clip(a.outline.Errors), text)
}

// setPolicy records what becomes of the statuses.
func (a *account) setPolicy(policy PodPolicy) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.policy = policy
}

// podPolicy returns what becomes of the statuses.
func (a *account) podPolicy() PodPolicy {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.policy
}

// cancel records that the shutdown is cancelled, and returns its kills.
func (a *account) cancel() []*kills.Kill {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.outline.Cancelled, a.closed = true, true
	return a.kills.All()
}

// end records when the host was released, unless that is known.
func (a *account) end(at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.outline.Ended.IsZero() {
		a.outline.Ended = at
	}
}

// close ends a shutdown of a former agent that does not go on: its pods may run on.
func (a *account) close() {
	a.end(time.Now())
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}

// owes reports what becomes of the statuses of pods that have not ended when the node goes down.
func (a *account) owes() (policy PodPolicy, owes bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.policy, a.flushes && !a.closed
}

// reopen takes back the end: the shutdown drains again.
func (a *account) reopen() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.again = a.again || !a.outline.Ended.IsZero()
	a.outline.Ended = time.Time{}
	select {
	case <-a.finished.Done():
		a.finished, a.complete = call.NewFuture[Report]()
	default:
	}
}

// drainsAgain reports whether the host may have been let go before.
func (a *account) drainsAgain() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.again
}

// finish says that all whom the shutdown has killed have ended, or are not waited for any more. Only the
// first call counts.
func (a *account) finish(r Report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-a.finished.Done():
	default:
		a.complete(r, nil)
	}
}

// wait waits until the shutdown is finished, or until ctx ends.
func (a *account) wait(ctx context.Context) (Report, error) {
	a.mu.Lock()
	finished := a.finished
	a.mu.Unlock()
	report, err := finished.Wait(ctx)
	return report, errors.Join(err, report.Err())
}

// head returns the report without its pods.
func (a *account) head() Report {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.outline
}

// report returns the report as it is now.
func (a *account) report() Report {
	report := a.head()
	report.Pods = a.podReports()
	return report
}

// nodeState returns what is published of the shutdown.
func (a *account) nodeState() NodeState {
	a.mu.Lock()
	defer a.mu.Unlock()
	return NodeState{ShuttingDown: true, Kind: a.outline.Kind, Since: a.outline.Started, Policy: a.policy}
}

// podReports returns the reports of the pods that were signalled, in the order of their kills.
func (a *account) podReports() []PodReport {
	all := a.kills.All()
	reports := make([]PodReport, 0, len(all))
	for _, k := range all {
		state := k.State()
		if !state.Signalled {
			continue
		}
		pod := k.Pod()
		r := PodReport{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
			Priority: k.Priority, Bucket: state.Bucket, GrantedSeconds: state.Seconds,
			Started: state.Started, Ended: state.Ended, Outcome: state.Result.Outcome,
			Unflushed: a.unflushed(pod, state), Joined: a.kills.Joined(k),
			Error: textOf(state.Err),
		}
		reports = append(reports, r)
	}
	return slices.Clip(inOrder(reports))
}

// unflushed reports whether the API server has not acknowledged the final status of a pod.
func (a *account) unflushed(pod *v1.Pod, state kills.State) bool {
	return a.flushes && (!state.Acknowledged || state.Former && a.owed(pod))
}

// spares reports whether a pod lives on if the shutdown is cancelled: it was not signalled.
func (a *account) spares(pod *v1.Pod) bool {
	k := a.kills.Find(kills.Key(pod))
	return k == nil || !k.Signalled()
}

// restore adds the pods of a former agent's record, and with head also the rest of its report but for
// its end.
// began is when the shutdown began, in the clock of this process.
func (a *account) restore(r *store.Record, began time.Time, head bool) {
	former := reportOf(r.Report)
	if head {
		a.mu.Lock()
		former.Errors = append(slices.Clip(former.Errors), a.outline.Errors...)
		former.Kind, former.Origin = cmp.Or(a.outline.Kind, former.Kind), cmp.Or(former.Origin, a.outline.Origin)
		former.Ended, former.Cancelled = a.outline.Ended, a.outline.Cancelled
		a.outline = former
		a.outline.Pods = nil
		a.mu.Unlock()
	}
	at := func(t time.Time) time.Time { // by the wall clock of the record
		if t.IsZero() {
			return t
		}
		return began.Add(t.Sub(former.Started))
	}
	for i := range r.Report.Pods {
		p := &r.Report.Pods[i]
		pod := restoredPod(p)
		if a.kills.Find(kills.Key(pod)) != nil {
			continue
		}
		var failure error
		if p.Error != "" {
			failure = errors.New(p.Error)
		}
		a.kills.Restore(kills.Restored{
			Pod: pod, Priority: p.Priority, Bucket: p.Bucket, Signalled: p.Signalled, Seconds: p.GrantedSeconds,
			Started: at(p.Started), Shortened: at(p.Shortened), Ended: at(p.Ended),
			Outcome: p.Outcome, Err: failure, Joined: p.Joined,
		})
	}
}
