package source

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Source is a host that announces its shutdown and can be made to wait before it shuts down. If it keeps the
// lock of an agent that has died, it is also an [Adopter].
type Source interface {
	// Connect returns a session that receives all events sent after Connect has returned.
	Connect(ctx context.Context) (Session, error)
}

// Adopter is a [Source] that can return the lock of a previous agent without a connection to the host,
// for instance from systemd's FD store.
type Adopter interface {
	// Adopt returns the lock of the previous agent, or nil if there is none. It does not block. The
	// caller owns the lock. A second call returns nil.
	Adopt() io.Closer
}

// Session is a connection to a host. Its methods may be called concurrently.
type Session interface {
	// Events returns the channel of the host's events, in order. It is closed when the connection
	// to the host or the lock is lost.
	Events() <-chan Event
	// Pending returns the shutdown that the host has announced, even before this session, or nil. An
	// event that Events delivers before Pending returns may be newer than the result.
	//
	// Set the Deadline only if the host reports it. Do not compute one, such as now plus a limit: if
	// a deadline has passed, the manager does not start a drain.
	//
	// If the host cannot report a pending shutdown, the error wraps [errors.ErrUnsupported] and the
	// session continues. Any other error ends the session.
	Pending(ctx context.Context) (*Event, error)
	// RequestDelay asks the host to delay a shutdown by requested, and returns the delay that it
	// grants. granted is also valid if the error is a *[DelayCappedError].
	//
	// The manager calls RequestDelay every 10 s while no shutdown is announced, because the host's
	// limit may change. Each call reads the limit, and raises it if necessary and possible.
	RequestDelay(ctx context.Context, requested time.Duration) (granted time.Duration, err error)
	// Inhibit takes the inhibitor lock. The lock outlives the session; its Close releases it. During a
	// shutdown a host grants no new lock, but Inhibit may return the lock of a previous agent that
	// [Adopter.Adopt] has not returned.
	Inhibit(ctx context.Context) (io.Closer, error)
	// Close ends the session and closes the channel of events. It does not release the lock.
	Close() error
}

// DelayCappedError means that the host granted less than the requested delay.
type DelayCappedError struct {
	Requested, Granted time.Duration
	Setting            string // the host's name for its limit, such as InhibitDelayMaxSec; or ""
	SetBy              string // the file that sets the limit, or ""
}

// Error returns a message with both durations and, if known, the setting and the file.
func (e *DelayCappedError) Error() string {
	text := fmt.Sprintf("the host delays its shutdown by %v at most, %v was requested", e.Granted, e.Requested)
	switch {
	case e.Setting != "" && e.SetBy != "":
		return fmt.Sprintf("%s; %s is set by %s", text, e.Setting, e.SetBy)
	case e.Setting != "":
		return fmt.Sprintf("%s; raise %s", text, e.Setting)
	case e.SetBy != "":
		return text + "; the limit is set by " + e.SetBy
	default:
		return text
	}
}
