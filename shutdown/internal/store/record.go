package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// recordVersion is the version of the format of a record. No other is read.
const recordVersion = 3

// Record is a node shutdown as it is stored. Its times since the boot are CLOCK_MONOTONIC, in
// nanoseconds, and mean nothing in another boot (see [Store.SinceBoot]).
type Record struct {
	// Version is set when the record is written.
	Version int `json:"version"`
	// BootID is the boot that the shutdown ends. Save sets it to this boot if it is empty.
	BootID string `json:"bootID"`
	// Announcements are those that stand.
	Announcements []Announcement `json:"announcements,omitempty"`
	// Dismissed means that Trigger has cancelled the shutdown while the host has it pending.
	Dismissed bool `json:"dismissed,omitempty"`
	// T0 is when the first event was received.
	T0 time.Duration `json:"t0MonotonicNanoseconds,omitempty"`
	// H is when the host is let go; 0: not known yet.
	H time.Duration `json:"hMonotonicNanoseconds,omitempty"`
	// Timetable is that of the drain; nil: the agent died before there was one.
	Timetable json.RawMessage `json:"timetable,omitempty"`
	// Begun and Done are the numbers of buckets whose kills have begun and that are finished, from
	// the lowest.
	Begun int `json:"begun,omitempty"`
	Done  int `json:"done,omitempty"`
	// Prepared, Held and Published say what of the beginning of a drain is over.
	Prepared  bool `json:"prepared,omitempty"`
	Held      bool `json:"held,omitempty"`
	Published bool `json:"published,omitempty"`
	// Policy says what becomes of the statuses of killed pods; "": nobody was asked yet.
	Policy string `json:"policy,omitempty"`
	// Refused is the number of refused admissions of all agents so far.
	Refused uint64 `json:"refused,omitempty"`
	// Debts is what the API server must still be told. It comes before the pods in the file, so
	// that it can mostly be read from a torn one.
	Debts []Debt `json:"debts,omitempty"`
	// Report has the kind and the start from the first write on.
	Report Report `json:"report"`
}

// Announcement is the announcement of a shutdown by one announcer.
type Announcement struct {
	Host   bool   `json:"host,omitempty"` // by the session of the host, not by Trigger
	Origin string `json:"origin,omitempty"`
	Kind   string `json:"kind,omitempty"`
	// Deadline is since the boot; 0: none.
	Deadline time.Duration `json:"deadlineMonotonicNanoseconds,omitempty"`
}

// The kinds of debts.
const (
	DebtStatus = "status" // a final status
	DebtReady  = "ready"  // the restoration of a readiness mark
)

// Debt is what the API server must still be told of one pod.
type Debt struct {
	Kind string  `json:"kind"` // DebtStatus or DebtReady
	Pod  *v1.Pod `json:"pod"`  // what the request needs; never nil
}

// Report says what became of the pods in one shutdown.
type Report struct {
	Kind      string    `json:"kind,omitempty"`
	Origin    string    `json:"origin,omitempty"`
	Started   time.Time `json:"started,omitzero"` // by the wall clock
	Ended     time.Time `json:"ended,omitzero"`   // zero: not yet
	Cancelled bool      `json:"cancelled,omitempty"`
	Errors    []string  `json:"errors,omitempty"`
	Pods      []Pod     `json:"pods,omitempty"`
}

// Pod says what became of one pod in a shutdown, or that the drain means to kill it.
type Pod struct {
	Namespace      string    `json:"namespace,omitempty"`
	Name           string    `json:"name,omitempty"` // never empty
	UID            types.UID `json:"uid,omitempty"`
	Priority       int32     `json:"priority,omitempty"`
	Bucket         int32     `json:"bucket,omitempty"`
	GrantedSeconds int64     `json:"grantedSeconds,omitempty"`
	Started        time.Time `json:"started,omitzero"`   // the first call of the killer; zero: not yet
	Shortened      time.Time `json:"shortened,omitzero"` // the end of its grace period, if a later call has set another
	Ended          time.Time `json:"ended,omitzero"`     // zero: not known to have ended
	Outcome        string    `json:"outcome,omitempty"`
	Error          string    `json:"error,omitempty"`
	Unflushed      bool      `json:"unflushed,omitempty"`
	Joined         bool      `json:"joined,omitempty"`
	// Signalled means that the killer was called, or was about to be.
	Signalled bool `json:"signalled,omitempty"`
	// Static means that it is a static pod or its mirror pod, and DaemonSet that a DaemonSet owns it.
	Static    bool `json:"static,omitempty"`
	DaemonSet bool `json:"daemonSet,omitempty"`
	// GraceSeconds is the pod's terminationGracePeriodSeconds; nil: it has none.
	GraceSeconds *int64 `json:"graceSeconds,omitempty"`
	// End is what its final status needs; nil: not known, or not needed.
	End *v1.Pod `json:"end,omitempty"`
}

// Content is a record whose pods and debts are given one by one, so that those of very many pods
// are never all in memory. A pod or debt is read before the next one is asked for.
type Content struct {
	Record Record          // its Debts and Report.Pods are ignored
	Pods   iter.Seq[*Pod]  // nil: none
	Debts  iter.Seq[*Debt] // nil: none
	// Written is called when the write is done, with its error; nil: nothing is called.
	Written func(error)
}

// check returns the reason why r is not usable, or nil. A record is usable however early its agent
// died.
func (r *Record) check() error {
	isWrong := func(d Debt) bool { return d.check() != nil }
	switch {
	case r.Version != recordVersion:
		return fmt.Errorf("version %d is not known, only %d", r.Version, recordVersion)
	case r.BootID == "":
		return errors.New("bootID is empty")
	case r.T0 < 0 || r.H < 0:
		return fmt.Errorf("t0MonotonicNanoseconds %d and hMonotonicNanoseconds %d must not be negative", r.T0, r.H)
	case r.Begun < 0 || r.Done < 0 || r.Timetable == nil && (r.Begun > 0 || r.Done > 0):
		return fmt.Errorf("begun is %d and done is %d, with a timetable of %d bytes", r.Begun, r.Done, len(r.Timetable))
	case slices.ContainsFunc(r.Announcements, func(a Announcement) bool { return a.Deadline < 0 }):
		return errors.New("announcements has a negative deadlineMonotonicNanoseconds")
	case slices.ContainsFunc(r.Debts, isWrong):
		return r.Debts[slices.IndexFunc(r.Debts, isWrong)].check()
	case slices.ContainsFunc(r.Report.Pods, func(p Pod) bool { return p.Name == "" }):
		return errors.New("report.pods has a pod without a name")
	default:
		return nil
	}
}

// check returns the reason why d is not usable, or nil.
func (d *Debt) check() error {
	if d.Kind != DebtStatus && d.Kind != DebtReady {
		return fmt.Errorf("debts has the unknown kind %q", d.Kind)
	}
	if d.Pod == nil || d.Pod.Name == "" {
		return errors.New("debts has one without a pod")
	}
	return nil
}
