package shutdown

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/internal/statelog"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// Report says what happened to the pods in one shutdown, in all of its drains and by all agents that took
// part.
type Report struct {
	Kind    source.Kind `json:"kind,omitempty"`
	Origin  string      `json:"origin,omitempty"` // the host's Origin if it announced the shutdown, else the first announcer's
	Started time.Time   `json:"started"`          // the first event, by the wall clock
	Ended   time.Time   `json:"ended"`            // when the lock was released, or Cancelled set; zero: not yet
	// Cancelled means that every announcement was withdrawn, or that no agent has continued the drain of one that died.
	Cancelled bool        `json:"cancelled,omitempty"`
	Pods      []PodReport `json:"pods,omitempty"` // in the order of their kills
	// Errors lists the failures that do not belong to a single kill: publishing, volumes, final statuses,
	// files.
	Errors []string `json:"errors,omitempty"`
}

// PodReport says what happened to one pod in a shutdown.
type PodReport struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid,omitempty"`
	Priority  int32     `json:"priority"` // as resolved by the plan
	Bucket    int32     `json:"bucket"`   // the Priority of its bucket
	// GrantedSeconds is the grace period in the first call of the killer. It may exceed the seconds of the
	// bucket, because pods also get the time that lower buckets have not used: see Window of package plan.
	GrantedSeconds int64     `json:"grantedSeconds"`
	Started        time.Time `json:"started"`           // the first call of the killer
	Ended          time.Time `json:"ended"`             // zero: the pod is not known to have ended
	Outcome        string    `json:"outcome,omitempty"` // from KillResult
	Error          string    `json:"error,omitempty"`   // from the newest call of the killer
	// Unflushed means that the API server has not acknowledged the final status. It is always false
	// if the [Reporter] is not a [StatusFlusher].
	Unflushed bool `json:"unflushed,omitempty"`
	// Joined means that an earlier shutdown or TerminateAll had signalled the pod, which was still running.
	// Started and GrantedSeconds are those of the earlier kill.
	Joined bool `json:"joined,omitempty"`
}

// Err joins Errors and an error for each pod that is not known to have ended. Nil: there are none.
func (r Report) Err() error {
	var errs []error
	for _, text := range r.Errors {
		errs = append(errs, errors.New(text))
	}
	return errors.Join(append(errs, r.podErrs()...)...)
}

// podErrs returns an error for each pod that is not known to have ended.
func (r Report) podErrs() (errs []error) {
	for _, p := range r.Pods {
		if p.Ended.IsZero() {
			errs = append(errs, fmt.Errorf("pod %s/%s: %s", p.Namespace, p.Name, cmp.Or(p.Error, "not known to have ended")))
		}
	}
	return errs
}

// reportOf returns the report of a shutdown. pods are those that it killed or found terminating, in the order of their kills.
func reportOf(s *node.Shutdown, pods []*node.Pod) Report {
	r := Report{Kind: s.Kind, Origin: s.Origin, Cancelled: s.Cancelled, Errors: slices.Clone(s.Errors)}
	r.Started, r.Ended = wallTimes(s)
	for _, p := range pods {
		needsAcceptance := s.SendsStatuses && p.GetsFinalStatus()
		wasKilledEarlier := p.SignalledBy != s.Number // by an earlier shutdown or TerminateAll
		r.Pods = append(r.Pods, PodReport{
			Namespace: p.Namespace, Name: p.Name, UID: uidOf(p), Priority: p.Priority, Bucket: p.Bucket,
			GrantedSeconds: p.GrantedSeconds, Started: wallTime(s, p.Signalled), Ended: wallTime(s, p.Ended), Outcome: p.Outcome, Error: p.Error,
			Unflushed: needsAcceptance && !p.StatusAccepted, Joined: wasKilledEarlier,
		})
	}
	return r
}

// wallTimes returns when a shutdown began and ended, by the wall clock.
func wallTimes(s *node.Shutdown) (started, ended time.Time) {
	return s.BeganWallTime, wallTime(s, s.Ended)
}

// wallTime converts a time since the boot to the wall clock. The start of the shutdown is known by both clocks,
// so steps of the wall clock since then do not change the result. A zero time stays zero.
func wallTime(s *node.Shutdown, sinceBoot time.Time) time.Time {
	if sinceBoot.IsZero() {
		return time.Time{}
	}
	return s.BeganWallTime.Add(sinceBoot.Sub(s.Began))
}

// uidOf returns the UID of a pod; "" if it has none.
func uidOf(p *node.Pod) types.UID {
	if p.Object == nil {
		return ""
	}
	return p.Object.UID
}

// StoredReport reads the report of the last shutdown from a state folder ([Options.StateDir]), for programs
// other than the agent. found is false if no report is stored. The error names a file that is not usable.
// Ended is zero if the shutdown has not ended. While a kill that fails is still retried, the Error of its pod
// may be that of an earlier attempt. StoredReport neither locks nor changes the folder. Only the agent's user
// and root may read the log.
func StoredReport(dir string) (report Report, found bool, err error) {
	if dir == "" {
		return Report{}, false, errors.New("no state folder is given: dir is empty")
	}
	if info, err := os.Stat(dir); err != nil {
		return Report{}, false, fmt.Errorf("failed to read the state folder: %w", err)
	} else if !info.IsDir() {
		return Report{}, false, fmt.Errorf("the state folder %q is no directory", dir)
	}
	contents, err := statelog.ReadFile(dir)
	if err != nil {
		return Report{}, false, err
	}
	report, found = storedReport(contents.Entries)
	return report, found, nil
}

// storedReport returns the report of the shutdown in a state log. found is false if the log has none.
func storedReport(log node.Entries) (report Report, found bool) {
	if log.Shutdown == nil {
		return Report{}, false
	}
	return reportOf(log.Shutdown, node.PodsOf(log.Shutdown, log.Pods)), true
}

// reportOf returns the current report of a shutdown. The mutex is held.
func (s *shell) reportOf(shutdown *node.Shutdown) Report {
	return reportOf(shutdown, s.node.PodsOf(shutdown))
}

// lastReport implements LastReport.
func (s *shell) lastReport() (Report, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.lastShutdown != nil:
		return s.reportOf(s.lastShutdown), true
	case s.storedReport != nil:
		return *s.storedReport, true
	default:
		return Report{}, false
	}
}

// setLastShutdown makes LastReport return the report of a shutdown, unless it returns that of a later one. It keeps the shutdown
// and not the report, because a pod that outlives the shutdown gets the time of its end later. The mutex is held.
func (s *shell) setLastShutdown(shutdown *node.Shutdown) {
	if s.lastShutdown == nil || s.lastShutdown.Number <= shutdown.Number {
		s.lastShutdown = shutdown
	}
}

// restoreLastReport makes LastReport return the report of the shutdown in the state log, unless this agent has had a shutdown
// already. It also sets the metrics to the times in the kubelet's state file.
func (s *shell) restoreLastReport(c statelog.Contents) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if report, found := storedReport(c.Entries); found && s.node.Shutdown() == nil {
		s.storedReport = &report
	}
	if times := c.Times; times != (statelog.Times{}) {
		s.setTimes(times.StartTime, times.EndTime)
	}
}

// onReportTime is how long TerminateAll waits for OnReport, from the time at which OnReport was called.
const onReportTime = 10 * time.Second

// deliverReport makes LastReport return the report of a shutdown, and passes the report to OnReport, if that is set. TerminateAll may
// be waiting for the first OnReport of the shutdown (awaitReport): this wait ends when OnReport has returned, and onReportTime after
// its call at the latest. The mutex is held.
func (s *shell) deliverReport(e node.Effect) {
	shutdown := e.Shutdown
	report := s.reportOf(shutdown)
	s.setLastShutdown(shutdown)
	logger := klog.FromContext(s.ctx).WithValues("pods", len(report.Pods), "notEnded", len(report.podErrs()), "errors", len(report.Errors), "cancelled", report.Cancelled)
	s.logLines.Add(func() { logger.Info("Shutdown manager completed processing shutdown event") })
	wait := s.reportWaitOf(shutdown.Number)
	if s.opts.OnReport == nil {
		wait.end()
		return
	}
	time.AfterFunc(onReportTime, wait.end)
	s.start(e, "Options.OnReport", func(ctx context.Context) error {
		s.opts.OnReport(ctx, report)
		return nil
	}, func(answer) node.Input { // OnReport has returned
		wait.end()
		return nil // the node needs no input
	})
}

// reportWait is the wait of TerminateAll for the first OnReport of one shutdown.
type reportWait struct {
	over chan struct{} // closed when OnReport has returned, onReportTime after it was called, or if it is not set
	end  func()        // closes over; may be called again
}

// reportWaitOf returns the reportWait of the shutdown with this number. If there is none yet, it makes one: awaitReport may begin
// to wait before deliverReport calls OnReport. The mutex is held.
func (s *shell) reportWaitOf(number int) reportWait {
	wait, isKnown := s.reportWaits[number]
	if !isKnown {
		over := make(chan struct{})
		wait = reportWait{over: over, end: sync.OnceFunc(func() { close(over) })}
		s.reportWaits[number] = wait
	}
	return wait
}

// awaitReport waits until OnReport has returned for the shutdown with this number, or has had onReportTime, or ctx ends.
func (s *shell) awaitReport(ctx context.Context, number int) {
	s.mu.Lock()
	wait := s.reportWaitOf(number)
	s.mu.Unlock()
	select {
	case <-wait.over:
	case <-ctx.Done():
	}
}
