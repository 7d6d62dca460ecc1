// Package host holds the inhibitor lock of an agent, so that the host delays its shutdown. It keeps a session
// with the source, requests the delay, and takes and releases one lock. It does not deal with pods or drains.
//
// All methods may be called concurrently. Calls of the source may hang, fail or panic: a call that times
// out stays in Options.Calls, and a new session replaces the old one.
package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

const (
	// reconnectPause is the pause before the next session, as the kubelet's dbusReconnectPeriod. It
	// does not grow with failures, because the host is this machine.
	reconnectPause = time.Second
	// hangingPerPause slows reconnecting down: the pause grows by reconnectPause with each 10 calls that hang.
	// Otherwise a source that hangs would fill the memory.
	hangingPerPause = 10
	// reachTimeout is the time from the start of Run to the call of HostUnreached, if the host was not reached.
	reachTimeout = 5 * time.Second
)

// Options configures a [Host]. All fields but Metrics are required.
type Options struct {
	Source       source.Source                    // a [source.Adopter] is first asked for the previous agent's lock
	Delay        time.Duration                    // the requested delay; it is requested again every 10 s
	ShortensPods func(granted time.Duration) bool // reports whether pods get less than their configured time if the host grants this
	Metrics      Metrics                          // nil: none
	Calls        *call.Group                      // runs the calls of the source
	Listener     Listener
}

// Metrics are the metrics of the lock, as a metrics.Shutdown has them. An interface keeps Prometheus out of programs
// without metrics.
type Metrics interface {
	Inhibitor(held bool)
	Delay(requested, granted time.Duration)
}

// noMetrics are the metrics of a Host without Options.Metrics: they drop everything.
type noMetrics struct{}

func (noMetrics) Inhibitor(bool)                     {}
func (noMetrics) Delay(time.Duration, time.Duration) {}

// Listener receives what the host announces. Its methods must return once they have handled the call,
// without waiting for pods or for the host, and at once when Run is ending. They may be called
// concurrently, but the events and the pending shutdown of one session come one after another, in
// order.
type Listener interface {
	HostEvent(event source.Event)
	// HostPending reports the result of Pending, once a session. pending is nil if no shutdown is
	// pending. known is false if the host cannot answer. It is not called if an event of the session
	// came before the result.
	HostPending(pending *source.Event, known bool, received time.Time)
	// HostUnreached is called at most once, if no session has returned from Pending or sent an event
	// within 5 s of Run.
	HostUnreached()
	// HostTried is called once, when the first attempt to take the lock has succeeded, failed or timed
	// out. It is not called after the end of Run.
	HostTried()
	// HostCapped reports, for the log, that the host granted so little that pods get less time. It is called again if the
	// text of err changes, or if the host granted enough in between.
	HostCapped(err error)
}

// State is the state of the lock.
type State string

// The states of the lock.
const (
	StateTrying   State = "Trying"   // no lock is held, but one is wanted
	StateHeld     State = "Held"     // a lock of this agent is held
	StateAdopted  State = "Adopted"  // the lock of the previous agent is held
	StateReleased State = "Released" // no lock is held, because of a shutdown or the end of Run
)

// Status is the status of the lock and the host.
type Status struct {
	State     State
	Requested time.Duration // 0 before the host has answered
	Granted   time.Duration // 0 before the host has answered
	Answered  bool          // the host has answered; Granted may be 0 nevertheless
	// Err says why no lock, or an insufficient one, is held: the host is unreachable or refuses, it
	// grants so little that pods get less time (a *[source.DelayCappedError]), or the lock may have
	// been lost with its session. Nil if all is well.
	Err error
}

// Held reports whether a lock is held.
func (s Status) Held() bool { return s.State == StateHeld || s.State == StateAdopted }

// Host holds the lock of this agent. Make one with [New].
type Host struct {
	Options

	lock     *lock
	delay    *delay
	contact  *contact
	logLines call.Sequence
}

// New returns a Host. BeginShutdown and the methods of [Hold] also work without Run.
func New(o Options) *Host {
	if o.Metrics == nil {
		o.Metrics = noMetrics{}
	}
	return &Host{
		Options:  o,
		lock:     &lock{calls: o.Calls, metrics: o.Metrics, wake: make(chan struct{}, 1)},
		delay:    &delay{},
		contact:  &contact{listener: o.Listener, calls: o.Calls},
		logLines: call.Sequence{Calls: o.Calls, Name: "the logger"},
	}
}

// Run adopts the previous agent's lock and keeps a session with the source until ctx ends. It replaces
// a lost or failed session forever. If no session has answered 5 s after its start, it calls
// Listener.HostUnreached. It returns within 4 s of the end of ctx, even if calls of the source hang, with the
// error of closing the last session. It does not release the lock: Close does. Call it once.
func (h *Host) Run(ctx context.Context) error {
	var watch sync.WaitGroup
	watch.Add(1)
	go func() {
		defer watch.Done()
		h.reportUnreached(ctx)
	}()
	defer watch.Wait()
	h.adopt(ctx)
	var loggedErr string // the text of the last logged failure: the same text is not logged again
	for {
		start := time.Now()
		closeErr, err := h.runSession(ctx)
		if ctx.Err() != nil {
			return closeErr // err only says that ctx has ended
		}
		err = errors.Join(err, closeErr)
		h.contact.setLost(err)
		// After a session that worked for longer than a pause, the same failure is logged again. If every session is lost at
		// once, it is not: the log would get a line every second.
		hasWorked := h.contact.hasSucceeded.Swap(false)
		if hasWorked && time.Since(start) > reconnectPause {
			loggedErr = ""
		}
		pauses := max(1, h.contact.hanging.Load()/hangingPerPause)
		pause := time.Duration(pauses) * reconnectPause
		if text := fmt.Sprint(err); text != loggedErr {
			h.logLines.Add(func() {
				klog.FromContext(ctx).Error(err, "Not connected to the host, will retry", "period", pause)
			})
			loggedErr = text
		}
		if times.Sleep(ctx, pause) != nil {
			return nil
		}
	}
}

// reportUnreached waits for reachTimeout, and then calls HostUnreached if the host was not reached. It ends early with ctx.
func (h *Host) reportUnreached(ctx context.Context) {
	if times.Sleep(ctx, reachTimeout) != nil { // ctx has ended
		return
	}
	if isReached := h.contact.reached.Load(); !isReached {
		h.Listener.HostUnreached()
	}
}

// adopt takes over the lock that the previous agent has left, if the source can. A lock that comes only after
// the timeout is kept too, unless another one is held by then.
func (h *Host) adopt(ctx context.Context) {
	adopter, ok := h.Source.(source.Adopter)
	if !ok {
		return
	}
	h.lock.withMutex(h.lock.beginAttempt) // so that the drain of a pending shutdown waits for Adopt
	defer h.lock.withMutex(h.lock.endAttempt)
	_, err := callSource(ctx, h.contact, "Adopt", answerTimeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, h.lock.adopt(ctx, adopter.Adopt())
	})
	if err != nil && ctx.Err() == nil {
		h.logLines.Add(func() { klog.FromContext(ctx).Error(err, "Failed to adopt the lock of a previous agent") })
	}
}

// runSession connects to the host and runs a session until the session is lost. closeErr is the error of closing it;
// err says why there is no session, or why it was lost.
func (h *Host) runSession(parent context.Context) (closeErr, err error) {
	connCtx, end := context.WithCancel(parent) // ends with the session: some sources then close the connection
	defer end()
	conn, err := callSource(parent, h.contact, "Connect", callTimeout, func(ctx context.Context) (source.Session, error) {
		stop := context.AfterFunc(ctx, end) // a timed-out Connect must not keep the connection
		defer stop()
		return h.Source.Connect(connCtx)
	})
	if err == nil && conn == nil {
		err = errors.New("the host returned no session")
	}
	if err != nil {
		return nil, fmt.Errorf("failed to connect to the host: %w", err)
	}
	defer h.lock.endSession()
	s := &session{Host: h, conn: conn, answers: make(chan pendingAnswer)}
	return s.run(parent)
}

// Status returns the status of the lock and the host.
func (h *Host) Status() Status {
	var status Status
	var mayBeLost bool
	h.lock.withMutex(func() { status.State, mayBeLost = h.lock.state(), h.lock.mayBeLost })
	status.Err = h.contact.statusErr(mayBeLost)
	if granted, known := h.Granted(); known {
		status.Requested, status.Granted, status.Answered = h.Delay, granted, true
	}
	return status
}

// Granted returns how long the host waits, by its newest answer; false before the first answer.
func (h *Host) Granted() (granted time.Duration, known bool) {
	if last := h.delay.limit.Load(); last != nil {
		return last.granted, true
	}
	return 0, false
}

// LimitSetBy names the setting and the file that make the host grant less than requested; "": they are not known, or the
// host grants the request or has not answered.
func (h *Host) LimitSetBy() string {
	if last := h.delay.limit.Load(); last != nil {
		return last.setBy
	}
	return ""
}

// Adopted reports whether the held lock is the previous agent's.
func (h *Host) Adopted() bool { return h.Status().State == StateAdopted }

// BeginShutdown begins a shutdown, and returns the Hold that controls the lock until the shutdown ends. A lock that is held
// stays held. If none is held, and Run is connected to the host, Run tries once to get the previous agent's lock. If a shutdown
// is in progress already, BeginShutdown only replaces its Hold, and the old Hold does nothing any more: the lock stays as it
// is, and so does the release that ReleaseAt has scheduled.
func (h *Host) BeginShutdown() *Hold {
	hold, l := &Hold{lock: h.lock}, h.lock
	l.withMutex(func() {
		if l.phase == phaseClosed {
			return
		}
		l.hold = hold
		if l.phase == phaseWanted { // no shutdown was in progress
			l.phase = phaseKept
			l.requestAttempt()
		}
	})
	return hold
}

// Close releases the lock for good: from now on none is held, and a Hold does nothing. It waits at most 1 s for the
// lock's Close. Call it when the context of Run ends. ctx has the logger; its end has no effect.
func (h *Host) Close(ctx context.Context) error {
	l := h.lock
	return l.withMutexThenClose(ctx, func() io.Closer {
		l.hold = nil
		l.cancelScheduledRelease()
		l.endAttempt()
		return l.drop(phaseClosed)
	})
}
