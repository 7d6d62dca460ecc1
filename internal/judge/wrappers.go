package judge

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// Terminator records the calls of a terminator.
type Terminator struct {
	*lifecycle.Terminator

	record *Record
	// terminating is held by Terminate from before it reads which termination is in progress until the call is recorded: another
	// call could otherwise begin that termination in between, or be recorded before the call that began it.
	terminating sync.Mutex
}

// NewTerminator returns a terminator that r records, with its calls of the options' Runtime, Pods, Hooks and Events. A nil
// Runtime stays nil, so that lifecycle.NewTerminator sees that it is missing. A test that sets hooks in a request must
// wrap them with [Record.HandlerRunner].
func (r *Record) NewTerminator(options lifecycle.TerminatorOptions) (*Terminator, error) {
	wrapped := options
	f, isFunc := options.Runtime.(lifecycle.RuntimeFunc)
	if isNilFunc := isFunc && f == nil; options.Runtime != nil && !isNilFunc {
		wrapped.Runtime = recordedRuntime{r, options.Runtime}
	}
	if options.Pods != nil {
		wrapped.Pods = recordedPods{r, options.Pods}
	}
	if options.Hooks == nil {
		wrapped.Hooks = lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{
			Commands: options.Commands, PodIP: options.PodIP,
			Events: options.Events, Metrics: options.Metrics, Gates: options.Gates,
		})
	}
	wrapped.Hooks = r.HandlerRunner(wrapped.Hooks)
	wrapped.Events = recordedEvents{r, options.Events}
	tr, err := lifecycle.NewTerminator(wrapped)
	if err != nil {
		return nil, err
	}
	r.record(func(Moment) {
		r.options = options
		r.options.StopTimeoutSlack = cmp.Or(options.StopTimeoutSlack, lifecycle.DefaultStopTimeoutSlack)
		r.options.GiveUpAfter = cmp.Or(options.GiveUpAfter, lifecycle.DefaultGiveUpAfter)
	})
	return &Terminator{Terminator: tr, record: r}, nil
}

// Terminate records the call with the deadline that it requests, and the end of the termination that it begins
// or joins. A call that Terminate refuses is not recorded.
func (t *Terminator) Terminate(ctx context.Context, pod *v1.Pod, req lifecycle.Request) *lifecycle.Termination {
	if pod == nil {
		return t.Terminator.Terminate(ctx, pod, req)
	}
	r := t.record
	request := &Request{
		Pod: pod, Key: keyOf(pod), OneAttempt: req.OneAttempt, ListsContainers: req.Containers == nil,
		Containers: slices.Clone(req.Containers),
	}
	t.terminating.Lock()
	defer t.terminating.Unlock()
	var joinedGrace int64 // in seconds, of the termination in progress that the call joins; 0: it joins none
	previous, found := t.Termination(pod)
	if found {
		joinedGrace = previous.Result().GracePeriodSeconds // read before the call, which may shorten it
	}
	r.record(func(now Moment) { request.Called = now })
	handle := t.Terminator.Terminate(ctx, pod, req)
	if wasRefused(handle) {
		return handle
	}
	r.record(func(now Moment) { request.Returned = now })
	if hasJoined := handle == previous; !hasJoined {
		joinedGrace = 0
	}
	request.Deadline = request.Called.At.Add(graceperiod.Duration(max(graceOf(pod, &req, joinedGrace), 0)))
	r.addReading(handle, func(t *Termination, _ Moment) {
		t.Pod, t.Key, t.Requests = cmp.Or(t.Pod, pod), request.Key, append(t.Requests, request)
	})
	return handle
}

// wasRefused reports whether Terminate has refused the request, which it reports as one result without a container
// name. There is then no termination to record.
func wasRefused(handle *lifecycle.Termination) bool {
	if !isDone(handle) {
		return false
	}
	results := handle.Result().Containers
	return len(results) == 1 && results[0].Name == ""
}

// graceOf returns the grace period in seconds that a request for a pod has, as documented for lifecycle.Request.
// joinedGrace is the grace period of the termination that the request joins; 0: it joins none.
func graceOf(pod *v1.Pod, req *lifecycle.Request, joinedGrace int64) int64 {
	switch {
	case req.Containers == nil:
		seconds, _ := graceperiod.ForPod(pod, joinedGrace, req.GracePeriodSeconds)
		return seconds
	case req.GracePeriodSeconds != nil:
		return *req.GracePeriodSeconds
	case joinedGrace != 0:
		return joinedGrace
	default:
		return graceperiod.ForContainer(pod, nil, graceperiod.ReasonUnknown)
	}
}

// addReading reads the deadline of a termination, adds the reading to the termination's record, and calls change with that
// record, while it holds the mutex. now is the moment after the reading.
func (r *Record) addReading(handle *lifecycle.Termination, change func(t *Termination, now Moment)) {
	var reading Reading
	r.record(func(now Moment) { reading.Called = now })
	reading.Deadline = handle.Deadline() // without the mutex: it may move until Returned
	r.record(func(now Moment) {
		reading.Returned = now
		t := r.termination(handle)
		t.Readings = append(t.Readings, reading)
		change(t, now)
	})
}

// termination returns the record of a termination. If there is none, it makes one, with a goroutine that records the
// end. Shorten may call it before the Terminate call that began the termination returns. The caller holds the mutex.
func (r *Record) termination(handle *lifecycle.Termination) *Termination {
	i := slices.IndexFunc(r.terminations, func(other *Termination) bool { return other.handle == handle })
	if i < 0 {
		i = len(r.terminations)
		r.terminations = append(r.terminations, &Termination{handle: handle})
		go r.awaitDone(handle)
	}
	return r.terminations[i]
}

// awaitDone waits for the end of a termination, and records it with the result and the last deadline.
func (r *Record) awaitDone(handle *lifecycle.Termination) {
	<-handle.Done()
	result := handle.Result()
	r.addReading(handle, func(t *Termination, now Moment) { t.Done, t.Result = now, result })
}

// KillPod calls Terminate and Wait.
func (t *Terminator) KillPod(ctx context.Context, pod *v1.Pod, req lifecycle.Request) (lifecycle.Result, error) {
	return t.Terminate(ctx, pod, req).Wait(ctx)
}

// Shorten calls Termination.Shorten and records the call: the deadline that it requests, and the termination's deadline
// after the call. If Terminate was refused, the handle has no termination, and nothing is recorded.
func (t *Terminator) Shorten(handle *lifecycle.Termination, seconds int64) bool {
	if wasRefused(handle) {
		return handle.Shorten(seconds)
	}
	request := &Request{Deadline: time.Now().Add(graceperiod.Duration(max(seconds, graceperiod.MinimumPodSeconds)))}
	t.record.record(func(now Moment) {
		request.Called = now
		termination := t.record.termination(handle)
		termination.Shortens = append(termination.Shortens, request)
	})
	shortened := handle.Shorten(seconds)
	t.record.addReading(handle, func(_ *Termination, now Moment) { request.Returned = now })
	return shortened
}

// KillContainer records the call with the deadline that it requests, and the result. A call without a pod or an ID,
// which the terminator refuses, is not recorded.
func (t *Terminator) KillContainer(ctx context.Context, pod *v1.Pod, c lifecycle.Container, req lifecycle.ContainerRequest) (lifecycle.ContainerResult, error) {
	if pod == nil || c.ID == "" {
		return t.Terminator.KillContainer(ctx, pod, c, req)
	}
	grace := graceperiod.ForContainer(pod, specOf(pod, c.Name).Container, req.Reason)
	if req.GracePeriodSeconds != nil {
		grace = *req.GracePeriodSeconds
	}
	request := &Request{
		Pod: pod, Key: keyOf(pod), Deadline: time.Now().Add(graceperiod.Duration(max(grace, 0))), OneAttempt: req.OneAttempt,
		Containers: []lifecycle.Container{c},
	}
	returned := t.record.recordCall(&request.Span, func() { t.record.kills = append(t.record.kills, request) })
	result, err := t.Terminator.KillContainer(ctx, pod, c, req)
	t.record.record(func(Moment) { request.Result = result })
	returned(err)
	return result, err
}

// Start records the call, and when the function that starts the container was called and returned. If the pod's termination
// has ended when Start returns, Start also records that: a start that ends late begins a termination without a Terminate call.
func (t *Terminator) Start(ctx context.Context, pod *v1.Pod, name string, start func(context.Context) error) error {
	if pod == nil || start == nil {
		return t.Terminator.Start(ctx, pod, name, start)
	}
	r := t.record
	s := &Start{Pod: keyOf(pod), Name: name}
	returned := r.recordCall(&s.Span, func() { r.starts = append(r.starts, s) })
	defer func() {
		if s.Returned.IsZero() { // the function ended its goroutine; a panic would have become an error
			returned(errDidNotReturn)
		}
	}()
	err := t.Terminator.Start(ctx, pod, name, func(ctx context.Context) error {
		r.record(func(now Moment) { s.Begun = now })
		defer func() { r.record(func(now Moment) { s.Ended = now }) }()
		return start(ctx)
	})
	t.terminating.Lock()
	defer t.terminating.Unlock()
	if handle, found := t.Termination(pod); found && isDone(handle) {
		result := handle.Result()
		r.addReading(handle, func(t *Termination, _ Moment) {
			s.Result = result
			if isUnknown := t.Pod == nil; isUnknown { // no Terminate call has returned it, so this start has begun it
				t.Pod, t.Key, t.BegunByStart = pod, s.Pod, true
			}
		})
	}
	returned(err)
	return err
}

// Forget records the call, unless the pod is nil.
func (t *Terminator) Forget(pod *v1.Pod) {
	if pod == nil {
		return
	}
	request := &Request{Pod: pod, Key: keyOf(pod)}
	returned := t.record.recordCall(&request.Span, func() { t.record.forgets = append(t.record.forgets, request) })
	t.Terminator.Forget(pod)
	returned(nil)
}

// Close records the call.
func (t *Terminator) Close(ctx context.Context) error {
	span := &Span{}
	returned := t.record.recordCall(span, func() { t.record.closes = append(t.record.closes, span) })
	err := t.Terminator.Close(ctx)
	returned(err)
	return err
}

// isDone reports whether a termination has ended, without waiting for that.
func isDone(handle *lifecycle.Termination) bool {
	select {
	case <-handle.Done():
		return true
	default:
		return false
	}
}

// recordedRuntime records the calls of a runtime. A call that panics or ends its goroutine is recorded
// as an error.
type recordedRuntime struct {
	record *Record
	lifecycle.Runtime
}

func (w recordedRuntime) Running(ctx context.Context, pod *v1.Pod) (running []lifecycle.Container, err error) {
	return w.record.running(ctx, pod, w.Runtime.Running)
}

func (w recordedRuntime) StopContainer(ctx context.Context, id string, seconds int64) error {
	return w.record.stop(&Stop{ID: id, Seconds: seconds}, func() error { return w.Runtime.StopContainer(ctx, id, seconds) })
}

// recordedPods records the calls of a PodStopper.
type recordedPods struct {
	record *Record
	lifecycle.PodStopper
}

func (w recordedPods) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	return w.record.running(ctx, pod, w.PodStopper.Running)
}

func (w recordedPods) StopPod(ctx context.Context, pod *v1.Pod, seconds int64) error {
	return w.record.stop(&Stop{Pod: keyOf(pod), Seconds: seconds}, func() error { return w.PodStopper.StopPod(ctx, pod, seconds) })
}

// running calls list, a Running method, and records the call. If it panics or ends its goroutine, its error is recorded as
// errDidNotReturn. The caller gets the result of the call. The record gets an error instead if the terminator does not
// use the result.
func (r *Record) running(ctx context.Context, pod *v1.Pod, list func(context.Context, *v1.Pod) ([]lifecycle.Container, error)) (running []lifecycle.Container, err error) {
	l := &List{Pod: keyOf(pod)}
	returned := r.recordCall(&l.Span, func() { r.lists = append(r.lists, l) })
	err = errDidNotReturn // stays if list panics
	defer func() {
		// The terminator does not use a result that arrives after StopTimeoutSlack, or that has an invalid ID: it calls
		// again. It uses one that arrives after Close.
		recordedErr := err
		if cause := context.Cause(ctx); recordedErr == nil && !errors.Is(cause, lifecycle.ErrClosed) {
			recordedErr = cause
		}
		if recordedErr == nil {
			recordedErr = checkIDs(running)
		}
		if recordedErr != nil {
			returned(recordedErr)
			return
		}
		r.record(func(Moment) { l.Running = slices.Clone(running) })
		returned(nil)
	}()
	running, err = list(ctx, pod)
	return running, err
}

// checkIDs returns an error for a list with an ID that the terminator refuses: an empty one, or one with the type of
// the runtime (TYPE://ID).
func checkIDs(running []lifecycle.Container) error {
	for _, c := range running {
		if c.ID == "" || strings.Contains(c.ID, "://") {
			return errInvalidID
		}
	}
	return nil
}

// stop runs a StopContainer or StopPod call and records it as s. If the call panics or ends its goroutine, its error
// is recorded as errDidNotReturn.
func (r *Record) stop(s *Stop, stopCall func() error) (err error) {
	returned := r.recordCall(&s.Span, func() { r.stops = append(r.stops, s) })
	err = errDidNotReturn // stays if stopCall panics
	defer func() { returned(err) }()
	err = stopCall()
	return err
}

// HandlerRunner returns a runner that records preStop hooks.
func (r *Record) HandlerRunner(hooks lifecycle.HandlerRunner) lifecycle.HandlerRunner {
	return recordedHooks{r, hooks}
}

type recordedHooks struct {
	record *Record
	lifecycle.HandlerRunner
}

// Run runs a hook. It records a preStop hook, with the time at which its context ended. Any other hook is a postStart
// hook. If the call panics or ends its goroutine, it has failed with errDidNotReturn.
func (w recordedHooks) Run(ctx context.Context, id string, pod *v1.Pod, c *v1.Container, handler *v1.LifecycleHandler) (message string, err error) {
	if isPreStop := pod != nil && c != nil && c.Lifecycle != nil && handler == c.Lifecycle.PreStop; !isPreStop {
		return w.runPostStart(ctx, id, pod, c, handler)
	}
	h := &Hook{Pod: keyOf(pod), Name: c.Name, ID: id, IsSleep: handler.Sleep != nil}
	returned := w.record.recordCall(&h.Span, func() { w.record.hooks = append(w.record.hooks, h) })
	var once sync.Once
	recordCancel := func() { once.Do(func() { w.record.record(func(now Moment) { h.Cancelled = now }) }) }
	stop := context.AfterFunc(ctx, recordCancel)
	err = errDidNotReturn // stays if HandlerRunner.Run panics
	defer func() {
		stop()
		if ctx.Err() != nil { // the goroutine of AfterFunc may not have run yet
			recordCancel()
		}
		returned(err)
	}()
	message, err = w.HandlerRunner.Run(ctx, id, pod, c, handler)
	return message, err
}

// runPostStart runs a postStart hook. It records only a failure, because Terminator.PostStart then stops the container.
func (w recordedHooks) runPostStart(ctx context.Context, id string, pod *v1.Pod, c *v1.Container, handler *v1.LifecycleHandler) (message string, err error) {
	err = errDidNotReturn // stays if HandlerRunner.Run panics
	defer func() {
		if err != nil && pod != nil && c != nil {
			w.record.recordPostStartKill(pod, c, id)
		}
	}()
	message, err = w.HandlerRunner.Run(ctx, id, pod, c, handler)
	return message, err
}

// recordPostStartKill records the failure of a postStart hook as a KillContainer call, because PostStart then stops the
// container. The grace period is the one for that reason.
func (r *Record) recordPostStartKill(pod *v1.Pod, c *v1.Container, id string) {
	grace := graceperiod.ForContainer(pod, c, graceperiod.ReasonFailedPostStartHook)
	request := &Request{
		Pod: pod, Key: keyOf(pod), Deadline: time.Now().Add(graceperiod.Duration(max(grace, 0))), IsPostStart: true,
		Containers: []lifecycle.Container{{Name: c.Name, ID: id}},
	}
	r.record(func(now Moment) {
		request.Called = now
		r.kills = append(r.kills, request)
	})
}

// recordedEvents records events; the wrapped recorder may be nil.
type recordedEvents struct {
	record *Record
	lifecycle.EventRecorder
}

// Event records an event of a pod, also if it has only a reference to the pod, and passes it on to the wrapped
// recorder, if there is one. A warning counts as an error.
func (w recordedEvents) Event(object runtime.Object, eventtype, reason, message string) {
	w.record.record(func(now Moment) {
		entry := LogEntry{Moment: now, Reason: reason, Text: message, IsError: eventtype == v1.EventTypeWarning}
		switch about := object.(type) {
		case *v1.Pod:
			entry.Pod = keyOf(about)
		case *v1.ObjectReference:
			entry.Pod = keyOf(&v1.Pod{ObjectMeta: metaOf(about)})
		}
		w.record.events = append(w.record.events, entry)
	})
	if w.EventRecorder != nil {
		w.EventRecorder.Event(object, eventtype, reason, message)
	}
}

// Context returns a context whose logger writes to the record.
func (r *Record) Context(ctx context.Context) context.Context {
	return logr.NewContext(ctx, logr.New(&sink{record: r}))
}
