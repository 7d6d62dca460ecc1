package shutdown

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Report is what became of the pods in one shutdown.
type Report struct {
	Kind      Kind        `json:"kind,omitempty"`
	Origin    string      `json:"origin,omitempty"`
	Started   time.Time   `json:"started"`             // when it was announced, by the wall clock
	Ended     time.Time   `json:"ended"`               // when the host was let go; zero: it had not come so far
	Cancelled bool        `json:"cancelled,omitempty"` // it was cancelled, or overtaken by one with less time
	Pods      []PodReport `json:"pods,omitempty"`      // in the order in which they were killed
	// Errors is what went wrong beside the pods' own ends: publishing, volumes,
	// final statuses, files.
	Errors []string `json:"errors,omitempty"`
}

// PodReport is what became of one pod in a shutdown.
type PodReport struct {
	Namespace      string    `json:"namespace"`
	Name           string    `json:"name"`
	UID            types.UID `json:"uid,omitempty"`
	Priority       int32     `json:"priority"`          // as resolved
	Bucket         int32     `json:"bucket"`            // the priority that names the bucket
	GrantedSeconds int64     `json:"grantedSeconds"`    // as asked of the killer
	Started        time.Time `json:"started"`           // when the killer was called
	Ended          time.Time `json:"ended"`             // zero: it is not known to have ended
	Outcome        string    `json:"outcome,omitempty"` // as the killer names it
	Error          string    `json:"error,omitempty"`   // why the killer failed
	// Unflushed says that the API server has not acknowledged the final status.
	// Always false without a [Reporter].
	Unflushed bool `json:"unflushed,omitempty"`
}

// texts are the texts of errors.
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

// lastReport is the newest report, made when it is asked for.
type lastReport struct {
	mu     sync.Mutex    // guards all below; never held while a report is made
	made   time.Time     // when its drain was made, by this process's clock
	report func() Report // makes the report; nil: there is none yet
}

// set makes a report the last one, unless a later shutdown has one already.
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

// setReport makes the report of a former agent the last one: any of this one is later,
// whatever the wall clock says.
func (m *Manager) setReport(r Report) {
	m.last.set(time.Time{}, func() Report { return r })
}

// LastReport is the report of the last shutdown that has come to its end, or of
// one before a restart of the agent or of the host if it was stored; false if
// there is none. Pods that outlive the shutdown have no end in it until they do.
func (m *Manager) LastReport() (Report, bool) {
	report := m.last.get()
	if report == nil {
		return Report{}, false
	}
	return report(), true
}
