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
	// terminateMu makes Terminate calls, and the end of Start calls, run one after another. Otherwise a call could join a
	// termination, and be recorded, before the call that began the termination is recorded.
	terminateMu sync.Mutex
}

// NewTerminator returns a terminator of which r records each call of its methods, and each call that it makes of the options'
// Runtime, Pods, Hooks and Events. A nil Runtime stays nil, so that lifecycle.NewTerminator sees that it is missing. A test that
// sets hooks in a request must wrap them with [Record.HandlerRunner].
func (r *Record) NewTerminator(options lifecycle.TerminatorOptions) (*Terminator, error) {
	wrapped := options
	f, isFunc := options.Runtime.(lifecycle.RuntimeFunc)
	isNil := options.Runtime == nil || isFunc && f == nil
	if !isNil {
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
	wrapped.Events = recordedEvents{r, options.Events} // if that is nil, events are recorded and go no further
	terminator, err := lifecycle.NewTerminator(wrapped)
	if err != nil {
		return nil, err
	}
	r.record(func(Moment) { // the rules need the options, with the defaults of lifecycle.NewTerminator
		r.options = options
		r.options.StopTimeoutSlack = cmp.Or(options.StopTimeoutSlack, lifecycle.DefaultStopTimeoutSlack)
		r.options.GiveUpAfter = cmp.Or(options.GiveUpAfter, lifecycle.DefaultGiveUpAfter)
	})
	return &Terminator{Terminator: terminator, record: r}, nil
}

// Terminate calls [lifecycle.Terminator.Terminate]. It records the call with the deadline that it requests, and the termination
// that it begins or joins. A call that is refused is not recorded.
func (t *Terminator) Terminate(ctx context.Context, pod *v1.Pod, req lifecycle.Request) *lifecycle.Termination {
	if pod == nil {
		return t.Terminator.Terminate(ctx, pod, req)
	}
	r := t.record
	request := &Request{
		Pod: pod, Key: keyOf(pod), OneAttempt: req.OneAttempt, HasNoList: req.Containers == nil,
		Containers: slices.Clone(req.Containers),
	}
	t.terminateMu.Lock()
	defer t.terminateMu.Unlock()
	var joinedGrace int64 // in seconds, of the termination that the call joins; 0: it begins one
	previous, found := t.Termination(pod)
	if found {
		joinedGrace = previous.Result().GracePeriodSeconds // before the call, which may shorten it
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
	request.Deadline = request.Called.At.Add(graceperiod.Duration(max(requestedGrace(pod, &req, joinedGrace), 0)))
	r.recordDeadline(handle, func(recorded *Termination, _ Moment) {
		recorded.Pod, recorded.Key = cmp.Or(recorded.Pod, pod), request.Key
		recorded.Requests = append(recorded.Requests, request)
	})
	return handle
}

// wasRefused reports whether Terminate has refused the request, so that there is no termination to record. The result then has
// one entry without a container name, which says why.
func wasRefused(handle *lifecycle.Termination) bool {
	if !isDone(handle) {
		return false
	}
	results := handle.Result().Containers
	return len(results) == 1 && results[0].Name == ""
}

// requestedGrace returns the grace period in seconds that a Terminate call requests for a pod, as documented for
// lifecycle.Request. joinedGrace is the grace period of the termination that the call joins; 0: it joins none.
func requestedGrace(pod *v1.Pod, req *lifecycle.Request, joinedGrace int64) int64 {
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

// recordDeadline reads the deadline of a termination and records it. At the same moment it calls change, which may record more of
// the termination.
func (r *Record) recordDeadline(handle *lifecycle.Termination, change func(recorded *Termination, now Moment)) {
	var reading Reading
	r.record(func(now Moment) { reading.Called = now })
	reading.Deadline = handle.Deadline() // other calls may move it until the moment Returned
	r.record(func(now Moment) {
		reading.Returned = now
		recorded := r.recordOf(handle)
		recorded.Readings = append(recorded.Readings, reading)
		change(recorded, now)
	})
}

// recordOf returns the record of a termination. The first call for a termination makes the record, and a goroutine that records
// the end. The caller holds the mutex.
func (r *Record) recordOf(handle *lifecycle.Termination) *Termination {
	i := slices.IndexFunc(r.terminations, func(other *Termination) bool { return other.handle == handle })
	if isNew := i < 0; isNew {
		i = len(r.terminations)
		r.terminations = append(r.terminations, &Termination{handle: handle})
		go r.recordEnd(handle)
	}
	return r.terminations[i]
}

// recordEnd waits for the end of a termination, and records it with the result and the last deadline.
func (r *Record) recordEnd(handle *lifecycle.Termination) {
	<-handle.Done()
	result := handle.Result()
	r.recordDeadline(handle, func(recorded *Termination, now Moment) { recorded.Done, recorded.Result = now, result })
}

// KillPod calls Terminate and Wait.
func (t *Terminator) KillPod(ctx context.Context, pod *v1.Pod, req lifecycle.Request) (lifecycle.Result, error) {
	return t.Terminate(ctx, pod, req).Wait(ctx)
}

// Shorten calls [lifecycle.Termination.Shorten]. It records the call with the deadline that it requests, and the termination's
// deadline after the call. If handle is that of a refused Terminate call, nothing is recorded.
func (t *Terminator) Shorten(handle *lifecycle.Termination, seconds int64) bool {
	if wasRefused(handle) {
		return handle.Shorten(seconds)
	}
	request := &Request{Deadline: time.Now().Add(graceperiod.Duration(max(seconds, graceperiod.MinimumPodSeconds)))}
	t.record.record(func(now Moment) {
		request.Called = now
		recorded := t.record.recordOf(handle)
		recorded.Shortens = append(recorded.Shortens, request)
	})
	shortened := handle.Shorten(seconds)
	t.record.recordDeadline(handle, func(_ *Termination, now Moment) { request.Returned = now })
	return shortened
}

// KillContainer calls [lifecycle.Terminator.KillContainer]. It records the call with the deadline that it requests, and the
// result. A call without a pod or an ID, which the terminator refuses, is not recorded.
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
	returned := t.record.recordCall(&request.Span, func() { t.record.killContainerCalls = append(t.record.killContainerCalls, request) })
	result, err := t.Terminator.KillContainer(ctx, pod, c, req)
	t.record.record(func(Moment) { request.Result = result })
	returned(err)
	return result, err
}

// Start calls [lifecycle.Terminator.Start]. It records the call, and when the function start was called and returned. If the pod's
// termination has ended then, it records that, too: a start that ends late begins a termination without a Terminate call.
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
	t.terminateMu.Lock()
	defer t.terminateMu.Unlock()
	if handle, found := t.Termination(pod); found && isDone(handle) {
		result := handle.Result()
		r.recordDeadline(handle, func(recorded *Termination, _ Moment) {
			s.Result = result
			if isUnknown := recorded.Pod == nil; isUnknown { // no Terminate call has returned it, so this start has begun it
				recorded.Pod, recorded.Key, recorded.BegunByStart = pod, s.Pod, true
			}
		})
	}
	returned(err)
	return err
}

// Forget calls [lifecycle.Terminator.Forget] and records the call. With a nil pod it does nothing.
func (t *Terminator) Forget(pod *v1.Pod) {
	if pod == nil {
		return
	}
	request := &Request{Pod: pod, Key: keyOf(pod)}
	returned := t.record.recordCall(&request.Span, func() { t.record.forgetCalls = append(t.record.forgetCalls, request) })
	t.Terminator.Forget(pod)
	returned(nil)
}

// Close calls [lifecycle.Terminator.Close] and records the call.
func (t *Terminator) Close(ctx context.Context) error {
	span := &Span{}
	returned := t.record.recordCall(span, func() { t.record.closeCalls = append(t.record.closeCalls, span) })
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

// recordedRuntime records the calls of a runtime.
type recordedRuntime struct {
	record *Record
	lifecycle.Runtime
}

func (w recordedRuntime) Running(ctx context.Context, pod *v1.Pod) (running []lifecycle.Container, err error) {
	return w.record.recordList(ctx, pod, w.Runtime.Running)
}

func (w recordedRuntime) StopContainer(ctx context.Context, id string, seconds int64) error {
	return w.record.recordStop(&StopCall{ID: id, Seconds: seconds}, func() error { return w.Runtime.StopContainer(ctx, id, seconds) })
}

// recordedPods records the calls of a PodStopper.
type recordedPods struct {
	record *Record
	lifecycle.PodStopper
}

func (w recordedPods) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	return w.record.recordList(ctx, pod, w.PodStopper.Running)
}

func (w recordedPods) StopPod(ctx context.Context, pod *v1.Pod, seconds int64) error {
	return w.record.recordStop(&StopCall{Pod: keyOf(pod), Seconds: seconds}, func() error { return w.PodStopper.StopPod(ctx, pod, seconds) })
}

// recordList calls list, a Running method, and records the call. If the terminator does not use the result, the record has an
// error instead.
func (r *Record) recordList(ctx context.Context, pod *v1.Pod, list func(context.Context, *v1.Pod) ([]lifecycle.Container, error)) (running []lifecycle.Container, err error) {
	l := &List{Pod: keyOf(pod)}
	returned := r.recordCall(&l.Span, func() { r.lists = append(r.lists, l) })
	err = errDidNotReturn // stays if list panics or ends its goroutine
	defer func() {
		recordedErr := cmp.Or(err, whyUnused(ctx, running))
		if recordedErr == nil {
			r.record(func(Moment) { l.Running = slices.Clone(running) })
		}
		returned(recordedErr)
	}()
	running, err = list(ctx, pod)
	return running, err
}

// whyUnused returns why the terminator does not use a list that has arrived; nil: it does. A list that arrives when a timeout has
// ended ctx is not used, and one that arrives after Close is.
func whyUnused(ctx context.Context, running []lifecycle.Container) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, lifecycle.ErrClosed) {
		return cause
	}
	return checkIDs(running)
}

// checkIDs returns an error if a list has an ID that the terminator refuses: an empty one, or one that begins with the type of the
// runtime (TYPE://ID).
func checkIDs(running []lifecycle.Container) error {
	for _, c := range running {
		if c.ID == "" || strings.Contains(c.ID, "://") {
			return errInvalidID
		}
	}
	return nil
}

// recordStop makes a StopContainer or StopPod call and records it as s.
func (r *Record) recordStop(s *StopCall, stop func() error) (err error) {
	returned := r.recordCall(&s.Span, func() { r.stopCalls = append(r.stopCalls, s) })
	err = errDidNotReturn // stays if stop panics or ends its goroutine
	defer func() { returned(err) }()
	err = stop()
	return err
}

// HandlerRunner returns a runner that runs hooks with the given one, and records preStop hooks and failed postStart hooks.
func (r *Record) HandlerRunner(hooks lifecycle.HandlerRunner) lifecycle.HandlerRunner {
	return recordedHooks{r, hooks}
}

type recordedHooks struct {
	record *Record
	lifecycle.HandlerRunner
}

// Run runs a preStop or postStart hook. It records a preStop hook, and when its context ended.
func (w recordedHooks) Run(ctx context.Context, id string, pod *v1.Pod, c *v1.Container, handler *v1.LifecycleHandler) (message string, err error) {
	if isPreStop := pod != nil && c != nil && c.Lifecycle != nil && handler == c.Lifecycle.PreStop; !isPreStop {
		return w.runPostStart(ctx, id, pod, c, handler)
	}
	h := &Hook{Pod: keyOf(pod), Name: c.Name, ID: id, IsSleep: handler.Sleep != nil}
	returned := w.record.recordCall(&h.Span, func() { w.record.hooks = append(w.record.hooks, h) })
	recordCancel := sync.OnceFunc(func() { w.record.record(func(now Moment) { h.Cancelled = now }) })
	stopWatching := context.AfterFunc(ctx, recordCancel)
	err = errDidNotReturn // stays if HandlerRunner.Run panics or ends its goroutine
	defer func() {
		stopWatching()
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
	err = errDidNotReturn // stays if HandlerRunner.Run panics or ends its goroutine
	defer func() {
		if err != nil && pod != nil && c != nil {
			w.record.recordPostStartKill(pod, c, id)
		}
	}()
	message, err = w.HandlerRunner.Run(ctx, id, pod, c, handler)
	return message, err
}

// recordPostStartKill records the failure of a postStart hook as a call of KillContainer, because Terminator.PostStart then stops
// the container in the same way.
func (r *Record) recordPostStartKill(pod *v1.Pod, c *v1.Container, id string) {
	grace := graceperiod.ForContainer(pod, c, graceperiod.ReasonFailedPostStartHook)
	request := &Request{
		Pod: pod, Key: keyOf(pod), Deadline: time.Now().Add(graceperiod.Duration(max(grace, 0))), IsPostStart: true,
		Containers: []lifecycle.Container{{Name: c.Name, ID: id}},
	}
	r.record(func(now Moment) {
		request.Called = now
		r.killContainerCalls = append(r.killContainerCalls, request)
	})
}

// recordedEvents records events; the wrapped recorder may be nil.
type recordedEvents struct {
	record *Record
	lifecycle.EventRecorder
}

// Event records an event of a pod and passes it on to the wrapped recorder, if there is one. The object is the pod or a reference
// to it. A warning counts as an error.
func (w recordedEvents) Event(object runtime.Object, eventtype, reason, message string) {
	w.record.record(func(now Moment) {
		entry := LogEntry{Moment: now, Reason: reason, Text: message, IsError: eventtype == v1.EventTypeWarning}
		switch about := object.(type) {
		case *v1.Pod:
			entry.Pod = keyOf(about)
		case *v1.ObjectReference:
			entry.Pod = keyOf(&v1.Pod{ObjectMeta: podMetadata(about)})
		}
		w.record.events = append(w.record.events, entry)
	})
	if w.EventRecorder != nil {
		w.EventRecorder.Event(object, eventtype, reason, message)
	}
}

// Context returns a context whose logger writes to the record.
func (r *Record) Context(ctx context.Context) context.Context {
	return logr.NewContext(ctx, logr.New(&logSink{record: r}))
}
