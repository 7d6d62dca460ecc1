package shutdown

import (
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
	Ended          time.Time `json:"ended"`             // zero: it had not ended
	Outcome        string    `json:"outcome,omitempty"` // as the killer names it
	Error          string    `json:"error,omitempty"`   // why the killer failed
	// Unflushed says that the API server has not acknowledged the final status.
	// Always false without a [Reporter].
	Unflushed bool `json:"unflushed,omitempty"`
}

// result is the report as it stands: a pod that has not ended has no end in it,
// and one that was never signalled is not in it.
func (d *drain) result(ended time.Time) Report {
	r := Report{
		Kind:      d.event.Kind,
		Origin:    d.event.Origin,
		Started:   d.began,
		Ended:     ended,
		Cancelled: d.retired(),
		Pods:      make([]PodReport, 0, len(d.order)),
	}
	for _, k := range d.order {
		pod := k.snapshot()
		if pod.Started.IsZero() {
			continue
		}
		pod.Unflushed = d.m.opts.Reporter != nil && !k.flushed
		r.Pods = append(r.Pods, pod)
	}
	for _, err := range d.errs {
		r.Errors = append(r.Errors, err.Error())
	}
	return r
}

// setReport makes r the last report, unless a later shutdown has one already.
func (m *Manager) setReport(r Report) {
	m.reportMu.Lock()
	defer m.reportMu.Unlock()
	if m.report == nil || !r.Started.Before(m.report.Started) {
		m.report = &r
	}
}
