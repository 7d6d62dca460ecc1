package api

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kubegrace/kubegrace/shutdown"
)

// Version is the apiVersion of all answers.
const Version = "node.kubegrace.dev/v1"

// Meta is the first part of each answer.
type Meta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// Error is the answer to a request that has failed.
type Error struct {
	Meta
	Message string `json:"message"`
}

// Status says what the agent does, and what its pods would lose if the machine shut down now.
type Status struct {
	Meta
	// Held says that the agent delays the machine's shutdown, Drained that kubegrace-node drain was called and
	// not withdrawn, and ShuttingDown that a shutdown or a drain has begun.
	Held         bool `json:"held"`
	Drained      bool `json:"drained"`
	ShuttingDown bool `json:"shuttingDown"`
	// AskedSeconds is how long the agent asks the host to wait.
	AskedSeconds float64 `json:"askedSeconds"`
	// Missing has a line for each thing that the agent works without.
	Missing []string `json:"missing,omitempty"`
	// PodsUnknown says that the container runtime does not list the pods. The fields below are then not known.
	PodsUnknown bool `json:"podsUnknown,omitempty"`
	// PodCount is the number of pods, CutShort the number of those that would get less time than they ask for,
	// and LostSeconds the sum of the time that these would lose.
	PodCount    int   `json:"podCount"`
	CutShort    int   `json:"cutShort"`
	LostSeconds int64 `json:"lostSeconds"`
}

// Report is the result of one shutdown.
type Report struct {
	Meta
	// UnderWay says that this shutdown has not ended, so the report is incomplete.
	UnderWay bool            `json:"underWay,omitempty"`
	Shutdown shutdown.Report `json:"shutdown"`
	// UnitsError says, after a drain, which units of --stop-unit still run and may start the pods again, or why that is not
	// known. "": none runs.
	UnitsError string `json:"unitsError,omitempty"`
}

// Err returns an error for each pod that was not stopped, for UnitsError, and for a shutdown that was cancelled; nil: there
// is nothing of these. If the report has no pods, the errors of the shutdown count too: the list of the pods may have failed.
func (r Report) Err() error {
	var errs []error
	if r.Shutdown.Cancelled {
		errs = append(errs, errors.New("the drain was called off: pods that were not told to stop by then run on"))
	}
	if failures := r.Shutdown.Errors; len(r.Shutdown.Pods) == 0 && len(failures) > 0 {
		errs = append(errs, fmt.Errorf("no pod was stopped: %s", strings.Join(failures, "; ")))
	}
	if r.UnitsError != "" {
		errs = append(errs, fmt.Errorf("the pods may be started again: %s", r.UnitsError))
	}
	for _, p := range r.Shutdown.Pods {
		if p.Error != "" {
			errs = append(errs, fmt.Errorf("pod %s/%s was not stopped: %s", p.Namespace, p.Name, p.Error))
		}
	}
	return errors.Join(errs...)
}

// ReportOf returns the answer of the agent for a report of package shutdown.
func ReportOf(r shutdown.Report) Report { return Report{Meta: Meta{Version, "Report"}, Shutdown: r} }
