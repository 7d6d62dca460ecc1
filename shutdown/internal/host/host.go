// Package host holds the inhibitor lock: it keeps a session with the source, takes and releases the one
// inhibitor lock, and asks for the time that a shutdown needs. It knows neither pods nor drains.
//
// All methods may be called concurrently. Each call of the source may hang, fail or panic: one
// that does not return is given up after a bound and stays in Options.Calls, and a new session
// replaces the one that it belongs to.
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
	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

const (
	// reconnectPause is the pause before the next session, as the kubelet's dbusReconnectPeriod.
	// The host is this machine, so it does not grow with failures.
	reconnectPause = time.Second
	// hangingPerPause is how many calls may hang for each reconnectPause: a source whose calls never
	// return would fill the memory.
	hangingPerPause = 10
	// reachTimeout is how long a host may take to be reached before a record of a shutdown counts.
	reachTimeout = 5 * time.Second
)

// Options are what a [Host] needs. All but Metrics are required.
type Options struct {
	Source   source.Source                    // a [source.Adopter] is asked for a left lock first
	Delay    time.Duration                    // what the host is asked to wait, and every 10 s whether it still does
	Shortens func(granted time.Duration) bool // reports whether pods lose time with this grant
	Metrics  *metrics.Shutdown                // nil: none
	Calls    *call.Group                      // runs the calls of the source
	Listener Listener
}

// Listener hears of the host. Its methods return when what they say has been acted on, and at once
// if Run is ending; they do not wait for pods or for the host. They may be called concurrently,
// but the events and the answer of one session are told one after another, in their order.
type Listener interface {
	HostEvent(event source.Event, received time.Time)
	// HostPending tells the answer of Pending, once a session. pending is nil if no shutdown is
	// pending. known is false if the host cannot tell. It is not called if the session has sent
	// an event before the answer came.
	HostPending(pending *source.Event, known bool, received time.Time)
	// HostUnreached says that no session has answered Pending or sent an event for 5 s since Run
	// began. It is called at most once.
	HostUnreached()
	// HostTried says that the first attempt to take the lock is over, with or without success, or has taken
	// too long. It is called once, unless Run ends before.
	HostTried()
	// HostCapped says that the host waits for so much less than asked that pods lose time. It is
	// called again when the text of err has changed, or if the host waited long enough in between.
	HostCapped(err error)
}

// State is what a [Host] does with the lock.
type State string

// The states of the lock.
const (
	StateTrying   State = "Trying"   // the lock is wanted and not held
	StateHeld     State = "Held"     // the lock is held
	StateAdopted  State = "Adopted"  // the lock is held, and is that of a previous agent
	StateReleased State = "Released" // no lock is held, because a shutdown is under way or Run is over
)

// Status is what is known of the lock and of the host.
type Status struct {
	State     State
	Requested time.Duration // what the host was asked for; 0 before it has answered
	Granted   time.Duration // how long the host waits; 0 before it has answered
	// Err is the reason why the lock is not held as wanted: the host cannot be reached, it
	// refuses, it waits for so much less than asked that pods lose time (a
	// *[source.DelayCappedError]), or the lock may have been lost together with its session. Nil:
	// all is well.
	Err error
}

// Held reports whether a lock is held.
func (s Status) Held() bool { return s.State == StateHeld || s.State == StateAdopted }

// Host is the host of this agent. Make one with [New].
type Host struct {
	Options

	lock    *lock
	delay   *delay
	contact *contact
}

// New returns a host that Run is to reach. Suspend and the methods of [Hold] work without Run.
func New(o Options) *Host {
	return &Host{
		Options: o,
		lock:    &lock{calls: o.Calls, metrics: o.Metrics, wake: make(chan struct{}, 1)},
		delay:   &delay{},
		contact: &contact{listener: o.Listener, calls: o.Calls},
	}
}

// Run adopts the lock that a previous agent left, and then keeps a session with the source until
// ctx ends; one that fails or is lost is replaced, for ever. It returns 4 s after the end of ctx
// at the latest, with the error of closing the last session. It does not release the lock. Call
// it once.
func (h *Host) Run(ctx context.Context) error {
	var watch sync.WaitGroup
	watch.Add(1)
	go func() {
		defer watch.Done()
		select {
		case <-time.After(reachTimeout):
			if !h.contact.reached.Load() {
				h.Listener.HostUnreached()
			}
		case <-ctx.Done():
		}
	}()
	defer watch.Wait()
	h.adopt(ctx)
	var logged string // the failure that was logged last; "": a session has gone well since
	for {
		start := time.Now()
		closeErr, err := h.runSession(ctx)
		if ctx.Err() != nil {
			return closeErr // a lost session is not needed any more, and the Group names calls that hang
		}
		err = errors.Join(err, closeErr)
		h.contact.lose(err)
		if h.contact.wentWell.Swap(false) && time.Since(start) > reconnectPause {
			logged = ""
		}
		pause := reconnectPause * time.Duration(max(1, h.contact.hanging.Load()/hangingPerPause))
		if text := fmt.Sprint(err); text != logged {
			klog.FromContext(ctx).Error(err, "Not connected to the host, will try again", "period", pause)
			logged = text
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// adopt takes over the lock that a previous agent left. A lock that comes after the wait for it
// counts too, if none is held by then.
func (h *Host) adopt(ctx context.Context) {
	adopter, ok := h.Source.(source.Adopter)
	if !ok {
		return
	}
	h.lock.do(h.lock.beginAdoption)
	defer h.lock.do(h.lock.endAdoption)
	_, err := ask(ctx, h.contact, "Adopt", answerTimeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, h.lock.adopt(ctx, adopter.Adopt())
	})
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Failed to adopt the lock of a previous agent")
	}
}

// runSession runs one session from Connect to its loss. It returns the error of Close and the
// reason of the loss.
func (h *Host) runSession(parent context.Context) (closeErr, err error) {
	life, end := context.WithCancel(parent) // of the connection, which some sources tie to it
	defer end()
	conn, err := ask(parent, h.contact, "Connect", hangTime, func(ctx context.Context) (source.Session, error) {
		stop := context.AfterFunc(ctx, end) // a Connect that is given up must not go on with the connection
		defer stop()
		return h.Source.Connect(life)
	})
	if err == nil && conn == nil {
		err = errors.New("the source has returned no session and no error")
	}
	if err != nil {
		return nil, fmt.Errorf("failed to connect to the host: %w", err)
	}
	defer h.lock.endSession()
	return (&session{Host: h, conn: conn, answers: make(chan answer)}).run(parent)
}

// Status returns what is known of the lock and of the host.
func (h *Host) Status() Status {
	var status Status
	var inDoubt bool
	h.lock.do(func() { status.State, inDoubt = h.lock.state(), h.lock.inDoubt })
	status.Err = h.contact.shown(inDoubt)
	if granted, known := h.Granted(); known {
		status.Requested, status.Granted = h.Delay, granted
	}
	return status
}

// Granted returns how long the host waits, as it said last; false if it has never said it.
func (h *Host) Granted() (granted time.Duration, known bool) {
	if last := h.delay.limit.Load(); last != nil {
		return last.granted, true
	}
	return 0, false
}

// LimitSetBy names the setting and the file that make the host wait for less than it was asked to;
// "": it waits as asked, or has not said.
func (h *Host) LimitSetBy() string {
	if last := h.delay.limit.Load(); last != nil {
		return last.setBy
	}
	return ""
}

// Adopted reports whether the lock that is held is that of a previous agent.
func (h *Host) Adopted() bool { return h.Status().State == StateAdopted }

// Suspend begins a shutdown: no lock is asked for, and the lock that is held stays. If none is
// held, one that a previous agent left is adopted from the session. If a shutdown is under way
// already, the new Hold takes the lock over as it is, with the time of ReleaseAt; the methods of
// the previous one do nothing from then on.
func (h *Host) Suspend() *Hold {
	o, l := &Hold{lock: h.lock}, h.lock
	l.do(func() {
		if l.phase == phaseClosed {
			return
		}
		l.hold = o
		if l.phase == phaseWanted {
			l.phase = phaseSuspended
			l.seekLock()
		}
	})
	return o
}

// Close releases the lock for good, even if ctx has ended, within a second. No lock is taken after
// it. Call it when the context of Run ends.
func (h *Host) Close(ctx context.Context) error {
	l := h.lock
	return l.change(ctx, func() io.Closer {
		l.hold = nil
		l.stopAlarm()
		l.endAdoption()
		return l.giveUp(phaseClosed)
	})
}
