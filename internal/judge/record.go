// Package judge holds what happened in the termination of pods to the promises of package lifecycle.
// A [Record] is filled by wrappers of what a terminator calls and of the terminator itself, and
// [Terminations] returns the promises that were broken:
//
//	record := judge.NewRecord()
//	terminator, err := record.NewTerminator(lifecycle.TerminatorOptions{Runtime: runtime, Events: events})
//	...
//	result, err := terminator.KillPod(ctx, pod, lifecycle.Request{})
//	...
//	require.Empty(t, judge.Terminations(record))
//
// A rule asks only what was asked, answered and said, each with its time. It never reads the state of
// the terminator.
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

// Moment is the time of something, and its place among what has the same time. The zero value is
// that of something that has not happened.
type Moment struct {
	At    time.Time
	Place int // from 1
}

// IsZero reports whether it has not happened.
func (m Moment) IsZero() bool { return m.Place == 0 }

// Before reports whether it has happened, and earlier than the other one, if that has happened.
func (m Moment) Before(other Moment) bool {
	return !m.IsZero() && (other.IsZero() || m.Place < other.Place)
}

// By reports whether it has happened by a time.
func (m Moment) By(at time.Time) bool { return !m.IsZero() && !m.At.After(at) }

// Span is a call: from when it was made until it returned.
type Span struct {
	Called   Moment
	Returned Moment
	Err      error
}

// List is one call of Running.
type List struct {
	Span

	Pod     string
	Running []lifecycle.Container
}

// lacks reports whether the list does not have a run.
func (l *List) lacks(c lifecycle.Container) bool {
	return !slices.ContainsFunc(l.Running, func(other lifecycle.Container) bool { return isSameRun(c, other) })
}

// replaces reports whether the list has a later run with the ID of a run.
func (l *List) replaces(c lifecycle.Container) bool {
	return slices.ContainsFunc(l.Running, func(other lifecycle.Container) bool {
		return other.ID == c.ID && !c.Began.IsZero() && other.Began.After(c.Began)
	})
}

// Stop is one call of StopContainer, or of StopPod.
type Stop struct {
	Span

	Pod     string // of StopPod; "" for StopContainer
	ID      string // of StopContainer; "" for StopPod
	Seconds int64
}

// isDelivered reports whether the call says that the container has ended.
func (s *Stop) isDelivered() bool {
	return !s.Returned.IsZero() && (s.Err == nil || errors.Is(s.Err, lifecycle.ErrKilled) || errors.Is(s.Err, lifecycle.ErrContainerNotFound))
}

// killAt returns when the runtime kills by the call.
func (s *Stop) killAt() time.Time {
	return s.Called.At.Add(graceperiod.Duration(max(s.Seconds, 0)))
}

// Hook is one preStop hook.
type Hook struct {
	Span

	Pod, Name, ID string
	IsSleep       bool
	Cut           Moment // when its context ended
}

// Start is one call of Start. Its span is that of the call; Begun and Ended are those of the function
// that starts the container.
type Start struct {
	Span

	Pod, Name    string
	Begun, Ended Moment
	Result       *lifecycle.Result // of the pod's termination, if that had ended when Start returned
}

// Use is a call of Terminate or KillContainer, or another reason for which containers stop.
type Use struct {
	Span // of the call

	Pod    *v1.Pod
	Key    string
	Until  time.Time // the end of the grace period that was asked for
	Once   bool
	Hooks  lifecycle.HandlerRunner
	handle *lifecycle.Termination // nil: a call of KillContainer

	IsDefault  bool                  // Terminate: no grace period is asked for, so that it shortens no termination that is under way
	IsPossible bool                  // PostStart may call KillContainer, and returns when that does
	Asks       bool                  // Terminate: the runtime is asked what runs
	Containers []lifecycle.Container // Terminate: exactly these; KillContainer: the one
	Result     lifecycle.ContainerResult
}

// Termination is one termination of a pod, which several calls may have joined.
type Termination struct {
	handle *lifecycle.Termination

	Pod      *v1.Pod
	Key      string
	Uses     []*Use // the calls of Terminate that have returned it
	Readings []Reading
	Shortens []*Use // the calls of Shorten
	IsLate   bool   // it stops what a start has left, and no call of Terminate began it
	Done     Moment
	Result   lifecycle.Result
}

// Reading is what Deadline said, between two moments.
type Reading struct {
	Asked Moment
	Moment

	Deadline time.Time
	Granted  int64
}

// Run is one run of a container, as the world knows it.
type Run struct {
	lifecycle.Container

	Pod         string
	Start, Exit Moment
	How         string // it ended
}

// Said is an event, or a line of the log.
type Said struct {
	Moment

	Pod, Reason, Text string
	IsError           bool
}

// Record is what happened. All methods may be called concurrently.
type Record struct {
	mu           sync.Mutex // guards the fields below
	moments      int
	options      lifecycle.TerminatorOptions
	began        time.Time
	lists        []*List
	stops        []*Stop
	hooks        []*Hook
	starts       []*Start
	terminations []*Termination
	kills        []*Use
	forgets      []*Use
	closes       []*Span
	runs         []*Run
	events       []Said
	log          []Said
}

// NewRecord returns an empty record.
func NewRecord() *Record { return &Record{began: time.Now()} }

// change calls do with the moment of now, with the mutex held.
func (r *Record) change(do func(now Moment)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moments++
	do(Moment{At: time.Now(), Place: r.moments})
}

// call records a call, and returns the function that records its return.
func (r *Record) call(s *Span, add func()) (returned func(error)) {
	r.change(func(now Moment) {
		s.Called = now
		add()
	})
	return func(err error) {
		r.change(func(now Moment) { s.Returned, s.Err = now, err })
	}
}

// Began records that a run has begun, for a world that knows it. The function that it returns records
// its end.
func (r *Record) Began(pod *v1.Pod, c lifecycle.Container) (ended func(how string)) {
	run := &Run{Container: c, Pod: keyOf(pod)}
	r.change(func(now Moment) {
		run.Start = now
		r.runs = append(r.runs, run)
	})
	return func(how string) {
		r.change(func(now Moment) {
			if run.Exit.IsZero() {
				run.Exit, run.How = now, how
			}
		})
	}
}

// keyOf returns the key of a pod.
func keyOf(pod *v1.Pod) string {
	return cmp.Or(string(pod.UID), pod.Namespace+"/"+pod.Name)
}

// isSameRun reports whether two containers are the same run.
func isSameRun(a, b lifecycle.Container) bool { return a.ID == b.ID && a.Began.Equal(b.Began) }

// Line is one thing that happened, as a text.
type Line struct {
	Moment

	Text string
}

// Story returns what happened, a line for each, in order.
func (r *Record) Story() string {
	var story strings.Builder
	for _, l := range r.Lines() {
		fmt.Fprintf(&story, "%10v %4d %s\n", r.since(l.At), l.Place, l.Text)
	}
	return story.String()
}

// Lines returns what happened, in order.
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
		add(l.Called, "%s: Running?", l.Pod)
		add(l.Returned, "%s: Running (of %v): %v %v", l.Pod, r.since(l.Called.At), names(l.Running), errText(l.Err))
	}
	for _, s := range r.stops {
		what := fmt.Sprintf("%s%s: stop(%d)", s.Pod, s.ID, s.Seconds)
		add(s.Called, "%s", what)
		add(s.Returned, "%s of %v returns: %v", what, r.since(s.Called.At), errText(s.Err))
	}
	for _, h := range r.hooks {
		add(h.Called, "%s: hook of %s", h.ID, h.Name)
		add(h.Cut, "%s: hook is cut", h.ID)
		add(h.Returned, "%s: hook returns: %s", h.ID, errText(h.Err))
	}
	for _, s := range r.starts {
		add(s.Called, "%s: Start(%s)", s.Pod, s.Name)
		add(s.Begun, "%s: %s is being started", s.Pod, s.Name)
		add(s.Ended, "%s: the start of %s has ended", s.Pod, s.Name)
		add(s.Returned, "%s: Start(%s) returns: %s", s.Pod, s.Name, errText(s.Err))
	}
	for _, t := range r.terminations {
		for _, u := range t.Uses {
			add(u.Called, "%s: Terminate(until %v, once %t, asks %t, %v)", t.Key, r.since(u.Until), u.Once, u.Asks, names(u.Containers))
		}
		for _, u := range t.Shortens {
			add(u.Called, "%s: Shorten(until %v)", t.Key, r.since(u.Until))
		}
		for _, reading := range t.Readings {
			add(reading.Moment, "%s: the deadline is %v", t.Key, r.since(reading.Deadline))
		}
		var results []string
		for _, c := range t.Result.Containers {
			result := fmt.Sprintf("%s(%s) %s", c.Name, c.ID, c.Outcome)
			if c.Hook.Outcome != "" {
				result += fmt.Sprintf(", hook %s %s", c.Hook.Outcome, c.Hook.Cause)
			}
			if c.Err != nil {
				result += ", error: " + errText(c.Err)
			}
			results = append(results, strings.TrimSpace(result))
		}
		add(t.Done, "%s: terminated: %s", t.Key, strings.Join(results, "; "))
	}
	for _, u := range r.kills {
		if u.IsPossible {
			continue
		}
		add(u.Called, "%s: KillContainer(%s until %v, once %t)", u.Key, names(u.Containers), r.since(u.Until), u.Once)
		add(u.Returned, "%s: KillContainer(%s) returns: %s %s", u.Key, names(u.Containers), u.Result.Outcome, errText(u.Err))
	}
	for _, u := range r.forgets {
		add(u.Called, "%s: Forget", u.Key)
	}
	for _, s := range r.closes {
		add(s.Called, "Close")
		add(s.Returned, "Close returns: %s", errText(s.Err))
	}
	for _, run := range r.runs {
		add(run.Start, "  world: %s runs, began %v", run.ID, r.since(run.Began))
		add(run.Exit, "  world: %s has ended: %s", run.ID, run.How)
	}
	for _, e := range r.events {
		add(e.Moment, "  event: %s %s", e.Reason, e.Text)
	}
	for _, e := range r.log {
		add(e.Moment, "  log: %s", e.Text)
	}
	slices.SortFunc(lines, func(a, b Line) int { return cmp.Compare(a.Place, b.Place) })
	return lines
}

// since returns how long after the beginning of the record a time is.
func (r *Record) since(at time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return at.Sub(r.began).Round(time.Millisecond)
}

func names(containers []lifecycle.Container) string {
	ids := make([]string, 0, len(containers))
	for _, c := range containers {
		ids = append(ids, c.ID)
	}
	return "[" + strings.Join(ids, " ") + "]"
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}
