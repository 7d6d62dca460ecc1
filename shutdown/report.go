package shutdown

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// Report says what became of the pods in one shutdown, over all of its drains and over the agents
// that have drained for it.
type Report struct {
	Kind      source.Kind `json:"kind,omitempty"`
	Origin    string      `json:"origin,omitempty"`    // the host, if it has announced the shutdown, else who was first
	Started   time.Time   `json:"started"`             // the first event, by the wall clock
	Ended     time.Time   `json:"ended"`               // when the host was released; zero: not yet
	Cancelled bool        `json:"cancelled,omitempty"` // every announcement of it was taken back
	Pods      []PodReport `json:"pods,omitempty"`      // in the order of their kills
	// Errors lists failures other than those of single kills: of publishing, volumes, final
	// statuses, files.
	Errors []string `json:"errors,omitempty"`
}

// PodReport says what became of one pod in a shutdown.
type PodReport struct {
	Namespace      string    `json:"namespace"`
	Name           string    `json:"name"`
	UID            types.UID `json:"uid,omitempty"`
	Priority       int32     `json:"priority"`          // as resolved by the plan
	Bucket         int32     `json:"bucket"`            // the priority that names the bucket
	GrantedSeconds int64     `json:"grantedSeconds"`    // the grace period in the first call of the killer
	Started        time.Time `json:"started"`           // the first call of the killer
	Ended          time.Time `json:"ended"`             // zero: the pod is not known to have ended
	Outcome        string    `json:"outcome,omitempty"` // in the killer's words
	Error          string    `json:"error,omitempty"`   // the last error of the killer
	// Unflushed means that the API server has not acknowledged the final status. It is false if
	// the [Reporter] is no [StatusFlusher].
	Unflushed bool `json:"unflushed,omitempty"`
	// Joined means that an earlier shutdown, which was cancelled or ended with Run, has signalled the
	// pod. Its times and its grace period are those of that kill, and the metrics count it there.
	Joined bool `json:"joined,omitempty"`
}

// Err joins what has failed: Errors, and an error for each pod that is not known to have ended, with
// its Error if it has one. Nil: nothing has.
func (r Report) Err() error {
	var errs []error
	for _, text := range r.Errors {
		errs = append(errs, errors.New(text))
	}
	return errors.Join(append(errs, r.podErrs()...)...)
}

// podErrs returns an error for each pod that is not known to have ended. One whose kill is still
// under way has no error of its own.
func (r Report) podErrs() (errs []error) {
	for _, p := range r.Pods {
		if p.Ended.IsZero() {
			errs = append(errs, fmt.Errorf("pod %s/%s: %s", p.Namespace, p.Name, cmp.Or(p.Error, "it is not known to have ended")))
		}
	}
	return errs
}

// inOrder sorts the reports of pods by the times of their kills.
func inOrder(reports []PodReport) []PodReport {
	byStart := func(a, b PodReport) int { return a.Started.Compare(b.Started) }
	if !slices.IsSortedFunc(reports, byStart) {
		slices.SortStableFunc(reports, byStart)
	}
	return reports
}

// reportOf returns the report of a shutdown with the pods that it has killed.
func reportOf(s *node.Shutdown, pods []*node.Pod) Report {
	r := Report{Kind: s.Kind, Origin: s.Origin, Cancelled: s.Cancelled, Errors: slices.Clone(s.Errors)}
	r.Started, r.Ended = timesOf(s)
	wall := func(t time.Time) time.Time { return wallOf(s, t) }
	for _, p := range pods {
		r.Pods = append(r.Pods, PodReport{
			Namespace: p.Namespace, Name: p.Name, UID: uidOf(p), Priority: p.Priority, Bucket: p.Bucket,
			GrantedSeconds: p.Granted, Started: wall(p.Signalled), Ended: wall(p.Ended), Outcome: p.Outcome, Error: p.Error,
			Unflushed: s.Statuses && !p.Told && p.IsTerminal(), Joined: p.Shutdown != s.Number,
		})
	}
	r.Pods = inOrder(r.Pods)
	return r
}

// timesOf returns when a shutdown began and ended, by the wall clock.
func timesOf(s *node.Shutdown) (started, ended time.Time) { return s.Wall, wallOf(s, s.Ended) }

// wallOf returns a time of a shutdown by the wall clock; all times of a shutdown are of one boot.
func wallOf(s *node.Shutdown, t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return s.Wall.Add(t.Sub(s.Began))
}

// uidOf returns the UID of a pod; "" if it has none.
func uidOf(p *node.Pod) types.UID {
	if p.Object == nil {
		return ""
	}
	return p.Object.UID
}

// textOf returns the text of an error; "" for nil. An Error method that panics gives a text too.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprint(err)
}
