// Package judge checks recorded pod terminations against the guarantees of package lifecycle. Wrappers around a
// terminator and its callbacks fill a [Record], and [Terminations] returns the violations:
//
//	record := judge.NewRecord()
//	terminator, err := record.NewTerminator(lifecycle.TerminatorOptions{Runtime: runtime, Events: events})
//	...
//	result, err := terminator.KillPod(ctx, pod, lifecycle.Request{})
//	...
//	require.Empty(t, judge.Terminations(record))
//
// A rule uses only recorded calls, results, events and log lines, with their times. It never reads the state of the
// terminator, so that a bug there cannot hide from it. Calls overlap, so the record does not always say what the terminator
// knew when it decided: a name with "may" stands for what is possible then, and a rule judges only what is certain.
//
// A run is one run of a container, from a start to its end. A container that starts again is another run, and may have the same
// ID. Its ID and its time Began identify a run. A request is a call of Terminate, KillContainer, Shorten or Forget.
//
// A shutdown of a node is checked in the same way: package noderecord fills a [NodeRecord], and [Node] returns the
// violations.
package judge

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// Moment is the time of an event, with its position in the order of all events: several events may have the same time. The
// zero value means that something has not happened.
type Moment struct {
	At    time.Time
	Order int // from 1, in the order of all events
}

// IsZero reports whether the event of m has not happened.
func (m Moment) IsZero() bool { return m.Order == 0 }

// Before reports whether m has happened before other. It is true if other has not happened at all, and false if m has not.
func (m Moment) Before(other Moment) bool {
	return !m.IsZero() && (other.IsZero() || m.Order < other.Order)
}

// HappenedBy reports whether m has happened, at a time or before it.
func (m Moment) HappenedBy(end time.Time) bool { return !m.IsZero() && !m.At.After(end) }

// isBetween reports whether m has happened after one moment and before another.
func (m Moment) isBetween(from, to Moment) bool { return from.Before(m) && m.Before(to) }

// Span is the time of a call, and its error.
type Span struct {
	Called   Moment
	Returned Moment
	Err      error
}

// List is one call of Running, which lists the running containers of a pod. "To request a list" is to make this call.
type List struct {
	Span

	Pod     string // its key (keyOf)
	Running []lifecycle.Container
}

// lacks reports whether the list does not have this run of a container; it may have another run with the same ID.
func (l *List) lacks(run lifecycle.Container) bool { return !hasRun(l.Running, run) }

// hasLaterRun reports whether the list shows that a container has started again: it has a later run with the same ID.
func (l *List) hasLaterRun(run lifecycle.Container) bool {
	return slices.ContainsFunc(l.Running, func(other lifecycle.Container) bool {
		return other.ID == run.ID && !run.Began.IsZero() && other.Began.After(run.Began)
	})
}

// provesEnd reports whether the list shows that a run of a container has ended that was stopped at a time: it lacks the run, and
// was requested since the stop. An older list is a proof only if it has a later run with the same ID.
func (l *List) provesEnd(run lifecycle.Container, stopped time.Time) bool {
	isNew := !l.Called.At.Before(stopped)
	return l.lacks(run) && (isNew || l.hasLaterRun(run))
}

// StopCall is one StopContainer or StopPod call.
type StopCall struct {
	Span

	Pod     string // of StopPod; "" for StopContainer
	ID      string // of StopContainer; "" for StopPod
	Seconds int64
}

// isStopPod reports whether s is a StopPod call, which stops all containers of the pod.
func (s *StopCall) isStopPod() bool { return s.ID == "" }

// stopsContainer reports whether the call is for the container with this ID, alone or with its whole pod.
func (s *StopCall) stopsContainer(id string) bool { return s.ID == id || s.isStopPod() }

// succeeded reports whether the runtime has replied that the container has ended, or that there is none.
func (s *StopCall) succeeded() bool {
	return !s.Returned.IsZero() && (s.Err == nil || errors.Is(s.Err, lifecycle.ErrContainerNotFound))
}

// killAt returns when the call's timeout ends, at which the runtime sends SIGKILL.
func (s *StopCall) killAt() time.Time {
	return s.Called.At.Add(graceperiod.Duration(max(s.Seconds, 0)))
}

// Hook is one execution of a preStop hook.
type Hook struct {
	Span

	Pod, Name, ID string
	IsSleep       bool
	Cancelled     Moment // when its context ended
}

// Start is one call of Terminator.Start, which calls a function that starts a container.
type Start struct {
	Span

	Pod, Name    string
	Begun, Ended Moment           // when that function was called, and when it returned
	Result       lifecycle.Result // of the pod's termination, if it had ended when Start returned
}

// Request is a call of Terminate, KillContainer, Shorten or Forget, or a failed postStart hook, after which PostStart
// stops the container.
type Request struct {
	Span

	Pod        *v1.Pod
	Key        string
	Deadline   time.Time // of the requested grace period
	OneAttempt bool

	IsPostStart bool                  // PostStart may call KillContainer, and returns when KillContainer does
	HasNoList   bool                  // Terminate: the call names no containers, so that the terminator asks the runtime
	Containers  []lifecycle.Container // Terminate: the named containers; KillContainer: the one to stop
	Result      lifecycle.ContainerResult
}

// Termination is one termination of a pod, shared by several Terminate calls.
type Termination struct {
	handle *lifecycle.Termination

	Pod          *v1.Pod
	Key          string
	Requests     []*Request // the Terminate calls that returned it; the first one began it
	Readings     []Reading
	Shortens     []*Request // the Shorten calls
	BegunByStart bool       // no Terminate call began it, but a Start call that returned after the pod's previous termination had ended
	Done         Moment     // when it had ended
	Result       lifecycle.Result

	forgottenAt Moment // when Forget was called that may have come after the beginning; zero: never. Then it uses no new lists
}

// Reading is one call of Termination.Deadline, which the record makes to know the deadline.
type Reading struct {
	Called, Returned Moment
	Deadline         time.Time
}

// Run is one run of a container as it really was, which the terminator need not know. A simulated runtime records it.
type Run struct {
	lifecycle.Container

	Pod         string
	Start, Exit Moment
	EndedBy     string // "KILL", or another reason of the simulated runtime
}

// LogEntry is an event or a log line.
type LogEntry struct {
	Moment

	Pod, Reason, Text string
	IsError           bool
}

// Record has everything that happened. All methods are safe for concurrent use.
type Record struct {
	mu                 sync.Mutex // guards the fields below
	moments            int        // the Order of the last Moment
	options            lifecycle.TerminatorOptions
	began              time.Time
	lists              []*List
	stopCalls          []*StopCall
	hooks              []*Hook
	starts             []*Start
	terminations       []*Termination
	killContainerCalls []*Request
	forgetCalls        []*Request
	closeCalls         []*Span
	runs               []*Run
	events             []LogEntry
	logs               []LogEntry
}

// NewRecord returns an empty record.
func NewRecord() *Record { return &Record{began: time.Now()} }

// record calls do, which adds to the record what happens at the present moment. It holds the mutex during the call.
func (r *Record) record(do func(now Moment)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moments++
	do(Moment{At: time.Now(), Order: r.moments})
}

// recordCall records the beginning of the call s; add must append s to the record. When the call is over, its caller passes the
// call's error to the function `returned`, which records the end.
func (r *Record) recordCall(s *Span, add func()) (returned func(error)) {
	r.record(func(now Moment) {
		s.Called = now
		add()
	})
	return func(err error) {
		r.record(func(now Moment) { s.Returned, s.Err = now, err })
	}
}

// Began records that a run has begun, for a simulated runtime. The returned function records the end of the run, and how it
// ended: "KILL", or another reason. Only its first call counts.
func (r *Record) Began(pod *v1.Pod, c lifecycle.Container) (ended func(how string)) {
	run := &Run{Container: c, Pod: keyOf(pod)}
	r.record(func(now Moment) {
		run.Start = now
		r.runs = append(r.runs, run)
	})
	return func(how string) {
		r.record(func(now Moment) {
			if run.Exit.IsZero() {
				run.Exit, run.EndedBy = now, how
			}
		})
	}
}

// keyOf returns the key of a pod: its UID, or NAMESPACE/NAME.
func keyOf(pod *v1.Pod) string {
	return cmp.Or(string(pod.UID), pod.Namespace+"/"+pod.Name)
}

// isSameRun reports whether a and b are the same run of a container: it has not started again in between.
func isSameRun(a, b lifecycle.Container) bool { return a.ID == b.ID && a.Began.Equal(b.Began) }

// hasRun reports whether containers has this run of a container.
func hasRun(containers []lifecycle.Container, run lifecycle.Container) bool {
	return slices.ContainsFunc(containers, func(other lifecycle.Container) bool { return isSameRun(run, other) })
}

// withID returns the containers that have this ID.
func withID(containers []lifecycle.Container, id string) []lifecycle.Container {
	return slices.DeleteFunc(slices.Clone(containers), func(c lifecycle.Container) bool { return c.ID != id })
}

// Line is one recorded fact as text.
type Line struct {
	Moment

	Text string
}

// Story returns the record as text, one fact per line, in order.
func (r *Record) Story() string {
	var story strings.Builder
	for _, l := range r.Lines() {
		fmt.Fprintf(&story, "%10v %4d %s\n", r.sinceStart(l.At), l.Order, l.Text)
	}
	return story.String()
}

// Lines returns the recorded facts in order.
func (r *Record) Lines() []Line {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []Line
	add := func(m Moment, format string, args ...any) {
		if !m.IsZero() {
			lines = append(lines, Line{m, fmt.Sprintf(format, args...)})
		}
	}
	for _, l := range r.lists {
		add(l.Called, "%s: Running()", l.Pod)
		add(l.Returned, "%s: Running (of %v): %v %v", l.Pod, r.sinceStart(l.Called.At), names(l.Running), errText(l.Err))
	}
	for _, s := range r.stopCalls {
		what := fmt.Sprintf("%s%s: stop(%d)", s.Pod, s.ID, s.Seconds)
		add(s.Called, "%s", what)
		add(s.Returned, "%s of %v returns: %v", what, r.sinceStart(s.Called.At), errText(s.Err))
	}
	for _, h := range r.hooks {
		add(h.Called, "%s: hook of %s", h.ID, h.Name)
		add(h.Cancelled, "%s: hook is cancelled", h.ID)
		add(h.Returned, "%s: hook returns: %s", h.ID, errText(h.Err))
	}
	for _, s := range r.starts {
		add(s.Called, "%s: Start(%s)", s.Pod, s.Name)
		add(s.Begun, "%s: %s is being started", s.Pod, s.Name)
		add(s.Ended, "%s: the start of %s has ended", s.Pod, s.Name)
		add(s.Returned, "%s: Start(%s) returns: %s", s.Pod, s.Name, errText(s.Err))
	}
	for _, t := range r.terminations {
		for _, request := range t.Requests {
			add(request.Called, "%s: Terminate(until %v, oneAttempt %t, lists %t, %v)", t.Key, r.sinceStart(request.Deadline), request.OneAttempt, request.HasNoList, names(request.Containers))
		}
		for _, request := range t.Shortens {
			add(request.Called, "%s: Shorten(until %v)", t.Key, r.sinceStart(request.Deadline))
		}
		for _, reading := range t.Readings {
			add(reading.Returned, "%s: the deadline is %v", t.Key, r.sinceStart(reading.Deadline))
		}
		add(t.Done, "%s: terminated: %s", t.Key, resultText(t.Result))
	}
	for _, request := range r.killContainerCalls {
		if request.IsPostStart {
			continue
		}
		add(request.Called, "%s: KillContainer(%s until %v, oneAttempt %t)", request.Key, names(request.Containers), r.sinceStart(request.Deadline), request.OneAttempt)
		add(request.Returned, "%s: KillContainer(%s) returns: %s %s", request.Key, names(request.Containers), request.Result.Outcome, errText(request.Err))
	}
	for _, request := range r.forgetCalls {
		add(request.Called, "%s: Forget", request.Key)
	}
	for _, s := range r.closeCalls {
		add(s.Called, "Close")
		add(s.Returned, "Close returns: %s", errText(s.Err))
	}
	for _, run := range r.runs {
		add(run.Start, "  world: %s runs, began %v", run.ID, r.sinceStart(run.Began))
		add(run.Exit, "  world: %s has ended: %s", run.ID, run.EndedBy)
	}
	for _, e := range r.events {
		add(e.Moment, "  event: %s %s", e.Reason, e.Text)
	}
	for _, e := range r.logs {
		add(e.Moment, "  log: %s", e.Text)
	}
	slices.SortFunc(lines, func(a, b Line) int { return cmp.Compare(a.Order, b.Order) })
	return lines
}

// resultText returns the result of each container, as in "app(1) Graceful; log(2) Forced, error: ...".
func resultText(result lifecycle.Result) string {
	texts := make([]string, 0, len(result.Containers))
	for _, c := range result.Containers {
		text := fmt.Sprintf("%s(%s) %s", c.Name, c.ID, c.Outcome)
		if c.Hook.Outcome != "" {
			text += fmt.Sprintf(", hook %s %s", c.Hook.Outcome, c.Hook.Cause)
		}
		if c.Err != nil {
			text += ", error: " + errText(c.Err)
		}
		texts = append(texts, strings.TrimSpace(text))
	}
	return strings.Join(texts, "; ")
}

// sinceStart returns the time from the start of the record until at; 0 if at is zero.
func (r *Record) sinceStart(at time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return at.Sub(r.began).Round(time.Millisecond)
}

// names returns the IDs of containers, as in "[a b]".
func names(containers []lifecycle.Container) string {
	ids := make([]string, 0, len(containers))
	for _, c := range containers {
		ids = append(ids, c.ID)
	}
	return "[" + strings.Join(ids, " ") + "]"
}

// errText returns the text of an error in one line; "" for nil.
func errText(err error) string {
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}
