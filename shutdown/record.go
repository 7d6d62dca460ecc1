package shutdown

import (
	"encoding/json"
	"iter"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
	"github.com/kubegrace/kubegrace/shutdown/internal/outbox"
	"github.com/kubegrace/kubegrace/shutdown/internal/store"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
)

// storedOutline returns what is on record of a report without its pods.
func storedOutline(r Report) store.Report {
	return store.Report{Kind: string(r.Kind), Origin: r.Origin, Started: r.Started, Ended: r.Ended, Cancelled: r.Cancelled, Errors: r.Errors}
}

// reportOf returns the report that is on record.
func reportOf(r store.Report) Report {
	report := Report{Kind: Kind(r.Kind), Origin: r.Origin, Started: r.Started, Ended: r.Ended, Cancelled: r.Cancelled, Errors: r.Errors}
	for _, p := range r.Pods {
		if p.Signalled {
			report.Pods = append(report.Pods, PodReport{
				Namespace: p.Namespace, Name: p.Name, UID: p.UID, Priority: p.Priority, Bucket: p.Bucket,
				GrantedSeconds: p.GrantedSeconds, Started: p.Started, Ended: p.Ended,
				Outcome: p.Outcome, Error: p.Error, Unflushed: p.Unflushed, Joined: p.Joined,
			})
		}
	}
	report.Pods = inOrder(report.Pods)
	return report
}

// storedPods returns the pods of an account for the record: whom the shutdown has killed, and whom
// it means to kill. What the final status of a pod needs is with it until it has ended and the
// outbox has it. Call it before the debts of the outbox are listed for the same record.
func (a *account) storedPods(so progress) iter.Seq[*store.Pod] {
	policy, owes := a.owes()
	known := a.kills.All()
	handedOver := make([]bool, len(known)) // to the outbox, or acknowledged since
	for i, k := range known {
		handedOver[i] = k.HasEnded() && (a.owed(k.Pod()) || k.Acknowledged())
	}
	return func(yield func(*store.Pod) bool) {
		var p store.Pod
		for i, k := range a.kills.All() {
			pod, state := k.Pod(), k.State()
			p = store.Pod{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Priority: k.Priority, GraceSeconds: pod.Spec.TerminationGracePeriodSeconds}
			p.Static, p.DaemonSet = staticpod.IsOrMirrors(pod), ofDaemonSet(pod)
			if state.Signalled {
				p.Signalled, p.Bucket, p.GrantedSeconds = true, state.Bucket, state.Seconds
				p.Started, p.Shortened, p.Ended, p.Outcome = state.Started, state.Shortened, state.Ended, state.Result.Outcome
				p.Joined, p.Unflushed = a.kills.Joined(k), a.unflushed(pod, state)
				p.Error = textOf(state.Err)
			}
			mayRun := state.Ended.IsZero() && (state.Signalled || !a.marks && so.mayHaveBegun(k.Priority))
			hasEnded := !state.Ended.IsZero() && !state.Acknowledged && (i >= len(known) || !handedOver[i])
			if of := policy.of(pod); (owes && mayRun || a.flushes && hasEnded) && of != PolicyLeaveAsIs {
				p.End = podToStore(withFinalStatus(k, of))
			}
			if !yield(&p) {
				return
			}
		}
	}
}

// mayHaveBegun reports whether the kills of the bucket of a priority have begun.
func (so progress) mayHaveBegun(priority int32) bool {
	if so.table == nil {
		return false
	}
	return so.table.Schedule().Index(priority) < so.begun
}

// formerPods returns the pods of a former agent's record. Of another boot, and for pods that have
// ended, the outbox owes what is owed for them. Statuses that are not among the debts any more are no
// longer unflushed; a pod of a cancelled shutdown that had not ended never owed one.
func formerPods(r *store.Record, boot string, debts iter.Seq2[outbox.Kind, *v1.Pod]) iter.Seq[*store.Pod] {
	owed := map[types.UID]bool{}
	for kind, pod := range debts {
		if kind == outbox.KindStatus {
			owed[kills.Key(pod)] = true
		}
	}
	return func(yield func(*store.Pod) bool) {
		for _, p := range r.Report.Pods {
			if r.BootID != boot || !p.Ended.IsZero() {
				p.End = nil
			}
			if !p.Ended.IsZero() || r.BootID != boot && !r.Report.Cancelled {
				p.Unflushed = p.Unflushed && owed[kills.Key(identity(p.Namespace, p.Name, p.UID))]
			}
			if !yield(&p) {
				return
			}
		}
	}
}

// identity returns a pod that has a name and a UID.
func identity(namespace, name string, uid types.UID) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid}}
}

// restoredPod returns the pod of a record, with what its policy and its kill need to know.
func restoredPod(p *store.Pod) *v1.Pod {
	pod := p.End
	if pod == nil {
		pod = identity(p.Namespace, p.Name, p.UID)
		pod.Spec.TerminationGracePeriodSeconds = p.GraceSeconds
	}
	if p.Static && !staticpod.IsOrMirrors(pod) {
		pod.Annotations = map[string]string{staticpod.SourceAnnotation: "file"}
	}
	if p.DaemonSet {
		controls := true
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: &controls}}
	}
	return pod
}

// storedDebts returns debts for the record.
func storedDebts(debts iter.Seq2[outbox.Kind, *v1.Pod]) iter.Seq[*store.Debt] {
	return func(yield func(*store.Debt) bool) {
		for kind, pod := range debts {
			stored := store.Debt{Kind: store.DebtStatus, Pod: podToStore(pod)}
			if kind != outbox.KindStatus { // a mark that was sent owes its restoration too
				stored.Kind = store.DebtReady
			}
			if !yield(&stored) {
				return
			}
		}
	}
}

// encodeTable returns a timetable for the record.
func encodeTable(t *timetable.Table, clock *store.Store) json.RawMessage {
	text, err := json.Marshal(t.Store(clock.SinceBoot))
	if err != nil {
		return nil // numbers and lists of numbers always have a JSON form
	}
	return text
}

// StoredReport reads the report of the last shutdown from a folder of state files (see
// [Options.StateDir]), for a program that shows it and is not the agent. found is false if no
// report is stored. A file that is not usable is an error that names it. If the shutdown has not
// ended yet, the report has no end. StoredReport does not lock the folder and writes nothing.
func StoredReport(dir string) (report Report, found bool, err error) {
	r, err := store.ReadRecord(dir)
	if r == nil || err != nil || r.Report.Started.IsZero() {
		return Report{}, false, err
	}
	return reportOf(r.Report), true, nil
}
