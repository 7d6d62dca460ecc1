package shutdown

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Report says what became of the pods in one shutdown.
type Report struct {
	Kind      Kind        `json:"kind,omitempty"`
	Origin    string      `json:"origin,omitempty"`
	Started   time.Time   `json:"started"`             // the event, by the wall clock
	Ended     time.Time   `json:"ended"`               // when the host was released; zero: not yet
	Cancelled bool        `json:"cancelled,omitempty"` // it was cancelled, or overtaken by one with less time
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
}

// texts returns the texts of errors.
func texts(errs []error) []string {
	if len(errs) == 0 {
		return nil
	}
	all := make([]string, len(errs))
	for i, err := range errs {
		all[i] = err.Error()
	}
	return all
}

// lastReport holds the newest report.
type lastReport struct {
	mu     sync.Mutex    // guards all below; never held while a report is made
	made   time.Time     // when its drain was made
	report func() Report // makes the report; nil: there is none
}

// set replaces the report unless it is that of a later drain.
func (l *lastReport) set(made time.Time, report func() Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.report == nil || !made.Before(l.made) {
		l.made, l.report = made, report
	}
}

func (l *lastReport) get() func() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.report
}

// setReport sets the report of a previous agent. Every report of this agent counts as later, even
// if the wall clock went back.
func (m *Manager) setReport(r Report) {
	m.last.set(time.Time{}, func() Report { return r })
}

// LastReport returns the report of the last shutdown that has ended or was interrupted by the end
// of Run; false if there is none. Before the first shutdown of this agent it is the report that a
// previous agent stored in [Options.StateDir]. A pod that outlives the shutdown gets its end in
// later calls.
func (m *Manager) LastReport() (Report, bool) {
	report := m.last.get()
	if report == nil {
		return Report{}, false
	}
	return report(), true
}
