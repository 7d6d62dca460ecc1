package source

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Source is a host that announces its shutdown and can be delayed. One that keeps the lock of an
// agent that has died is an [Adopter] too.
type Source interface {
	// Connect returns a session that has subscribed to the host's events: no event that the host
	// sends after Connect is lost.
	Connect(ctx context.Context) (Session, error)
}

// Adopter is a [Source] that can hand over the lock of a previous agent of this machine without a
// session, and so before the host can be reached. An example is systemd's FD store.
type Adopter interface {
	// Adopt returns the lock that a previous agent has left, or nil if there is none. It does not
	// block. The caller owns the lock, as one of [Session.Inhibit]. Each lock is handed out once: a
	// second call returns nil.
	Adopt() io.Closer
}

// Session is a connection to a host. Its methods may be called concurrently.
type Session interface {
	// Events returns the channel of the host's events, in order. It is closed when the connection
	// to the host, or the lock, is lost.
	Events() <-chan Event
	// Pending returns the shutdown that is under way, or nil. An event that Events delivers
	// before Pending returns may be newer than its answer.
	//
	// Its Deadline is set only if the host itself says when it goes on: the manager begins
	// nothing for a shutdown whose deadline has passed. A deadline that a source would only
	// compute, as now plus a limit, says nothing about the host and is left out.
	//
	// A host that cannot know whether a shutdown is under way returns an error that wraps
	// [errors.ErrUnsupported]; the session goes on. Any other error ends the session.
	Pending(ctx context.Context) (*Event, error)
	// RequestDelay asks the host to wait for wish at a shutdown, and returns how long it will. If
	// the error is a *[DelayCappedError], granted is valid too.
	//
	// A host may change its limit at any time. The manager therefore calls RequestDelay again every
	// 10 s while no shutdown is announced: the call reads the limit, raises it again if that is
	// possible, and changes nothing if the host still waits as it did. A source without a limit, or
	// whose limit is fixed, returns the same each time.
	RequestDelay(ctx context.Context, wish time.Duration) (granted time.Duration, err error)
	// Inhibit takes the lock that delays the shutdown. The lock outlives the session. Its Close
	// releases it. During a shutdown a host grants no new lock, but may hand over the one
	// of a previous agent that [Adopter.Adopt] has not handed out.
	Inhibit(ctx context.Context) (io.Closer, error)
	// Close ends the session and closes the channel of events. It does not release a lock.
	Close() error
}

// DelayCappedError says that the host waits for less than it was asked for.
type DelayCappedError struct {
	Requested, Granted time.Duration
	Setting            string // the host's name for its limit, such as InhibitDelayMaxSec; "" if it has none
	SetBy              string // the file that sets the limit; "" if not known
}

// Error names both times and, if they are known, the setting and the file.
func (e *DelayCappedError) Error() string {
	text := fmt.Sprintf("the host delays its shutdown by %v at most, %v was asked for", e.Granted, e.Requested)
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
