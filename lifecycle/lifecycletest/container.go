package lifecycletest

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// killedCode is the exit code of a process that was killed with SIGKILL.
const killedCode = 137

// container is one run of a container of the fake runtime.
type container struct {
	pod       types.UID
	listed    lifecycle.Container // as Running lists it
	script    Script
	records   *records
	exited    context.Context // ends when it has exited
	setExited context.CancelFunc

	mu           sync.Mutex  // guards the fields below; not held while a call waits
	code         int32       // the exit code, once the container has exited
	calls        int         // number of StopContainer calls
	wasSignalled bool        // the stop signal was sent
	exitTimer    *time.Timer // of ExitAfter, from the start; nil: none
	termTimer    *time.Timer // of ExitAfterTerm, from the stop signal; nil: none
}

// run starts a container that follows the script, and records its exit in exits.
func run(pod types.UID, listed lifecycle.Container, script Script, exits *records) *container {
	c := &container{pod: pod, listed: listed, script: script, records: exits}
	c.exited, c.setExited = context.WithCancel(context.Background()) //nolint:forbidigo // it outlives the call that starts it
	c.mu.Lock()                                                      // end must not run before exitTimer is set
	defer c.mu.Unlock()
	if script.ExitAfter > 0 {
		c.exitTimer = time.AfterFunc(script.ExitAfter, func() { c.end(ByItself) })
	}
	return c
}

// exitCode returns the exit code. exited is false while the container runs.
func (c *container) exitCode() (code int32, exited bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.code, c.exited.Err() != nil
}

// end makes the container exit and records why, unless it has already exited.
func (c *container) end(by ExitCause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(by)
}

// endLocked makes the container exit, and records the exit with its cause. After a kill the exit code is killedCode, whatever
// the script says. It does nothing if the container has already exited. The caller holds the mutex.
func (c *container) endLocked(by ExitCause) {
	if c.exited.Err() != nil {
		return
	}
	for _, timer := range []*time.Timer{c.exitTimer, c.termTimer} {
		if timer != nil {
			timer.Stop()
		}
	}
	c.code = c.script.ExitCode
	if by == ByKill {
		c.code = killedCode
	}
	c.records.exited(c.listed.ID, by, c.code)
	c.setExited()
}

// stop handles a StopContainer call. The script may make the call hang or fail. Otherwise stop sends the stop
// signal, waits for the exit, and kills after the timeout; the script may make it return too early or too
// late. A call that hangs ends with ctx, or when released is closed.
func (c *container) stop(ctx context.Context, timeoutSeconds int64, released <-chan struct{}) error {
	hangs, fails := c.nextFault()
	switch {
	case hangs:
		return c.hang(ctx, released)
	case fails:
		return ErrScripted
	case timeoutSeconds <= 0:
		c.end(ByKill)
	default:
		c.signal()
	}
	timeout := graceperiod.Duration(timeoutSeconds)
	if c.script.StopReturnsEarly { // the kill at the end of the timeout must not depend on this call
		time.AfterFunc(timeout, func() { c.end(ByKill) })
		return nil
	}
	if err := c.awaitExit(ctx, timeout); err != nil {
		return err
	}
	if c.script.StopReturnsLate > 0 && times.Sleep(ctx, c.script.StopReturnsLate) != nil {
		return ctx.Err()
	}
	return nil
}

// awaitExit waits until the container has exited, and kills it at the timeout. If ctx ends first, it does not kill.
func (c *container) awaitExit(ctx context.Context, timeout time.Duration) error {
	select {
	case <-c.exited.Done():
	case <-ctx.Done():
		return ctx.Err()
	case <-times.After(time.Now().Add(timeout)):
		c.end(ByKill)
	}
	return nil
}

// hang blocks a StopContainer call until ctx ends, unless the script makes the call ignore ctx, or until released is closed.
func (c *container) hang(ctx context.Context, released <-chan struct{}) error {
	if c.script.HangIgnoresContext {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-released:
		return ErrScripted
	}
}

// nextFault counts a StopContainer call, and returns what the script has the call do: hang, fail or, if both
// are false, work. The calls that hang come first, then those that fail. A negative number in the script means all.
func (c *container) nextFault() (hangs, fails bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	s := c.script
	hangs = s.HangStops < 0 || c.calls <= s.HangStops
	fails = s.FailStops < 0 || c.calls <= s.HangStops+s.FailStops
	return hangs, fails && !hangs
}

// signal sends the stop signal, on which the container exits as its script says. Only the first signal has
// an effect.
func (c *container) signal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exited.Err() != nil || c.wasSignalled {
		return
	}
	c.wasSignalled = true
	switch {
	case c.script.IgnoreTerm:
	case c.script.ExitAfterTerm <= 0:
		c.endLocked(ByTerm)
	default:
		c.termTimer = time.AfterFunc(c.script.ExitAfterTerm, func() { c.end(ByTerm) })
	}
}

// exec runs a command with Script.Exec. The command's context also ends at the timeout and when the
// container exits. A timeout of 0 or less means none.
func (c *container) exec(ctx context.Context, cmd []string, timeout time.Duration) ([]byte, error) {
	if _, exited := c.exitCode(); exited {
		return nil, errContainerExited
	}
	if c.script.Exec == nil { // every command succeeds
		return nil, nil
	}
	if timeout > 0 {
		timed, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		ctx = timed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stopWatching := context.AfterFunc(c.exited, func() { cancel(errContainerExited) })
	defer stopWatching()
	return c.script.Exec(ctx, cmd)
}
