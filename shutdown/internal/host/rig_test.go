//go:build go1.25

package host_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

const (
	requestedDelay = 30 * time.Second // Options.Delay of each rig
	noLimit        = 0                // script.limit of a host that grants any delay
)

// rig runs a Host with a scripted source. It is also the Host's listener, and suspends the lock during a shutdown, as an agent
// does.
type rig struct {
	t      *testing.T
	script *script
	host   *host.Host
	calls  *call.Group
	log    log
	began  time.Time          // when Run began
	stop   context.CancelFunc // ends Run; nil: it has not begun
	ended  chan error         // the result of Run
	isOver bool               // end was called already

	mu            sync.Mutex
	received      []string // calls of the listener, such as "2s HostEvent(shutdown)": a shutdown began at 2 s
	hold          *host.Hold
	ignoresEvents bool // a shutdown of the host does not suspend the lock
}

// inBubble runs a test in a bubble with a rig that has not started. At the end it calls r.end, which requires that all
// locks and sessions are closed.
func inBubble(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		test(t, r)
		r.end()
	})
}

// subtestInBubble runs a subtest as inBubble runs a test.
func subtestInBubble(t *testing.T, name string, test func(t *testing.T, r *rig)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { inBubble(t, test) })
}

// newRig returns a rig whose Run has not begun.
func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, script: newScript(), calls: &call.Group{}, log: newLog()}
	r.host = host.New(r.options(r.script))
	t.Cleanup(func() { // a test that has failed has not called end
		if r.stop != nil && !r.isOver {
			r.stop()
			r.script.unblock()
		}
	})
	return r
}

// options returns the options of the Host. By these, pods get less time than configured if the host grants less than 25 s
// of the 30 s.
func (r *rig) options(source source.Source) host.Options {
	return host.Options{
		Source: source, Delay: requestedDelay, Calls: r.calls, Listener: r,
		ShortensPods: func(granted time.Duration) bool { return granted < requestedDelay-5*time.Second },
	}
}

// The arguments of useAdopter.
const (
	withLock    = true
	withoutLock = false
)

// useAdopter makes the source an Adopter. hasLock says whether the previous agent has left a lock. Call it
// before run.
func (r *rig) useAdopter(hasLock bool) {
	r.script.leftLock = hasLock
	r.host = host.New(r.options(adopting{r.script}))
}

// loggingContext returns a context whose logger writes to r.log.
func (r *rig) loggingContext() context.Context {
	return klog.NewContext(r.t.Context(), r.log.Logger)
}

// run starts Run and waits until it blocks.
func (r *rig) run() {
	ctx, stop := context.WithCancel(r.loggingContext())
	r.began, r.stop, r.ended = time.Now(), stop, make(chan error, 1)
	go func() { r.ended <- r.host.Run(ctx) }()
	synctest.Wait()
}

// end ends Run, unblocks hanging calls, and requires that all locks and sessions are closed.
func (r *rig) end() {
	r.t.Helper()
	if r.stop == nil || r.isOver {
		return
	}
	r.isOver = true
	r.stop()
	r.requireNoError(r.host.Close(r.loggingContext()), "Close")
	ended := time.Now()
	r.requireNoError(<-r.ended, "Run")
	require.LessOrEqual(r.t, time.Since(ended), 4*time.Second, "Run takes too long to end")
	r.script.set(func(s *script) { s.faults = nil })
	r.script.unblock()
	require.Empty(r.t, r.calls.Wait(nil))
	require.Empty(r.t, r.script.misuses())
	require.Zero(r.t, r.script.heldLocks())
	require.Equal(r.t, host.StateReleased, r.host.Status().State)
}

// requireNoError requires that err is nil, unless a fault was injected.
func (r *rig) requireNoError(err error, method string) {
	r.t.Helper()
	faulted := false
	r.script.set(func(s *script) { faulted = s.faulted })
	if !faulted {
		require.NoError(r.t, err, method)
	}
}

// advance lets d pass, and then waits until all goroutines are blocked.
func (r *rig) advance(d time.Duration) {
	<-times.After(time.Now().Add(d))
	synctest.Wait()
}

// record records a call of the listener, with the time since the start of Run, such as "2s HostTried".
func (r *rig) record(call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.received = append(r.received, fmt.Sprintf("%v %s", time.Since(r.began), call))
}

// listenerCalls returns the calls of the listener so far.
func (r *rig) listenerCalls() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.received...)
}

// The methods of host.Listener record that they were called.

// HostEvent records whether a shutdown begins or is cancelled, and suspends or ends the Hold accordingly.
func (r *rig) HostEvent(event source.Event) {
	if event.Cancelled {
		r.record("HostEvent(cancelled)")
	} else {
		r.record("HostEvent(shutdown)")
	}
	r.setShutdown(!event.Cancelled)
}

// HostPending records whether a shutdown is pending and whether that is known. If it is known, HostPending suspends or ends
// the Hold accordingly.
func (r *rig) HostPending(pending *source.Event, known bool, received time.Time) {
	require.False(r.t, received.After(time.Now()))
	if !known {
		r.record("HostPending(unknown)")
		return
	}
	if pending == nil {
		r.record("HostPending(none)")
	} else {
		r.record("HostPending(shutdown)")
	}
	r.setShutdown(pending != nil)
}

// HostUnreached, HostTried and HostCapped only record the call.
func (r *rig) HostUnreached()   { r.record("HostUnreached") }
func (r *rig) HostTried()       { r.record("HostTried") }
func (r *rig) HostCapped(error) { r.record("HostCapped") }

// setShutdown does what an agent does when a shutdown begins or is cancelled: it suspends the lock, or ends the Hold.
func (r *rig) setShutdown(begins bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ignoresEvents:
	case begins && r.hold == nil:
		r.hold = r.host.BeginShutdown()
	case !begins && r.hold != nil:
		r.hold.End()
		r.hold = nil
	}
}

// releaseLock releases the lock of a shutdown: the function that Release returns closes it.
func releaseLock(ctx context.Context, hold *host.Hold) error {
	closeLock := hold.Release()
	return closeLock(ctx)
}

// requireOneLock requires that the host really has one lock, and that the Host shows it as held or adopted.
func (r *rig) requireOneLock(state host.State) {
	r.t.Helper()
	require.Equal(r.t, 1, r.script.heldLocks(), "locks held")
	require.Equal(r.t, state, r.host.Status().State)
}

// requireLockHeld requires that the lock is one that this agent has taken.
func (r *rig) requireLockHeld() { r.t.Helper(); r.requireOneLock(host.StateHeld) }

// requireLockAdopted requires that the lock is that of the previous agent, or one that the host grants in a shutdown.
func (r *rig) requireLockAdopted() { r.t.Helper(); r.requireOneLock(host.StateAdopted) }

// requireLockReleased requires that the Host has released its lock, and holds none.
func (r *rig) requireLockReleased() {
	r.t.Helper()
	require.Zero(r.t, r.script.heldLocks(), "locks held")
	require.Equal(r.t, host.StateReleased, r.host.Status().State)
}
