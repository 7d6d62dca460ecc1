// Package host holds the host: it keeps a session with the source, takes and releases the one
// inhibitor lock, and asks for the time that a shutdown needs. It knows neither pods nor drains.
//
// All methods may be called concurrently. Each call of the source may hang, fail or panic: one
// that does not return is given up after a bound and stays in Options.Calls, and a new session
// replaces the one that it belongs to.
package host

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// Options are what a [Host] needs. All but Metrics are required.
type Options struct {
	Source   source.Source                    // a [source.Adopter] is asked for a left lock first
	Delay    time.Duration                    // what the host is asked to wait
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
	// HostTried says that the first attempt to hold the host is over, well or not, or has taken
	// too long. It is called once, unless Run ends before.
	HostTried()
	// HostCapped says that the host waits for so much less than asked that pods lose time. It is
	// called again when the text of err has changed, or after the host has waited long enough.
	HostCapped(err error)
}

// Host is the host of this agent. Make one with [New].
type Host struct {
	source   source.Source
	listener Listener
	caller   *caller
	lock     *lock
	delay    *delay
	trouble  *trouble
}

// New returns a host that Run is to reach. Suspend and the methods of [Hold] work without Run.
func New(o Options) *Host {
	return &Host{
		source:   o.Source,
		listener: o.Listener,
		caller:   &caller{calls: o.Calls},
		lock:     &lock{calls: o.Calls, metrics: o.Metrics, wake: make(chan struct{}, 1)},
		delay:    &delay{wish: o.Delay, shortens: o.Shortens, metrics: o.Metrics, listener: o.Listener},
		trouble:  &trouble{},
	}
}

// Run adopts the lock that a former agent left, and then keeps a session with the source until
// ctx ends. It returns 4 s after that at the latest, with the error of closing the last session.
// It does not release the lock. Call it once.
func (h *Host) Run(ctx context.Context) error {
	contact := newContact(h.listener, h.trouble)
	var watch sync.WaitGroup
	watch.Go(func() { contact.watch(ctx) })
	defer watch.Wait()
	h.adopt(ctx)
	s := &sessions{source: h.source, listener: h.listener, caller: h.caller, lock: h.lock, delay: h.delay, trouble: h.trouble, contact: contact}
	return s.run(ctx)
}

// adopt takes over the lock that a former agent left. A lock that comes after the wait for it
// counts too, if none is held by then.
func (h *Host) adopt(ctx context.Context) {
	adopter, ok := h.source.(source.Adopter)
	if !ok {
		return
	}
	h.lock.beginAdoption()
	defer h.lock.endAdoption()
	_, err := ask(ctx, h.caller, "Adopt", answerTimeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, h.lock.adopt(ctx, adopter.Adopt())
	}, nil)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to adopt the lock of a former agent")
	}
}

// Status returns what is known of the lock and of the host.
func (h *Host) Status() Status {
	status, inDoubt := h.lock.status()
	status.Requested, status.Granted, _ = h.delay.times()
	status.Err = h.trouble.shown(inDoubt)
	return status
}

// Granted returns how long the host waits, as it said last; false if it has never said it.
func (h *Host) Granted() (time.Duration, bool) {
	_, granted, known := h.delay.times()
	return granted, known
}

// Adopted reports whether the lock that is held is that of a former agent.
func (h *Host) Adopted() bool {
	status, _ := h.lock.status()
	return status.State == StateAdopted
}

// Suspend begins a shutdown: no lock is asked for, and the lock that is held stays. If none is
// held, one that a former agent left is adopted from the session. If a shutdown is under way
// already, the new Hold takes the lock over as it is, with the time of LetGoAt; the methods of
// the former one do nothing from then on.
func (h *Host) Suspend() *Hold { return h.lock.suspend() }

// Close releases the lock for good, even if ctx has ended, within a second. No lock is taken after
// it. Call it when the context of Run ends.
func (h *Host) Close(ctx context.Context) error { return h.lock.closeForGood(ctx) }
