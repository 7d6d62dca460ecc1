// Package source declares what a host is to an agent that delays its shutdown: a [Source] that
// announces shutdowns and gives locks. The package has no functions that block and no state. A
// source and its sessions may be called concurrently.
package source

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Kind is what the host is going to do, in logind's words.
type Kind string

const (
	// KindUnknown means that the source does not know. It is treated as a power off.
	KindUnknown Kind = ""
	// KindPoweroff switches the machine off. This kind and those below are the types in logind's
	// PrepareForShutdownWithMetadata signal.
	KindPoweroff Kind = "poweroff"
	// KindReboot starts the machine again.
	KindReboot Kind = "reboot"
	// KindHalt stops the system and leaves the machine switched on.
	KindHalt Kind = "halt"
	// KindKexec boots another kernel without the firmware.
	KindKexec Kind = "kexec"
	// KindSoftReboot restarts user space under the same kernel.
	KindSoftReboot Kind = "soft-reboot"
)

// Event announces or cancels a shutdown of the host. The zero value is a shutdown that begins
// now, of an unknown kind and without a deadline.
type Event struct {
	Cancelled bool      // the announced shutdown will not happen
	Kind      Kind      // what the host is going to do
	Deadline  time.Time // when the host goes on at the latest; zero: not known
	Origin    string    // who announces it, for the report: "logind", "SIGTERM"
}

// Source is a host that announces its shutdown and can be delayed.
type Source interface {
	// Connect returns a session that has subscribed to the host's events: no event that the host
	// sends after Connect is lost.
	Connect(ctx context.Context) (Session, error)
}

// Adopter is a Source that may have the lock of a previous agent, as systemd's FD store keeps one.
type Adopter interface {
	// Adopt returns the lock that a previous agent left; nil: there is none. It needs no session.
	// The lock belongs to the caller: a further call returns nil.
	Adopt() io.Closer
}

// Session is a connection to a host. Its methods may be called concurrently.
type Session interface {
	// Events returns the channel of the host's events, in order. It is closed when the connection
	// to the host, or the lock, is lost.
	Events() <-chan Event
	// Pending returns the shutdown that is under way, or nil. A host that cannot know this
	// returns an error that wraps [errors.ErrUnsupported]; the session goes on. Any other error
	// ends the session.
	Pending(ctx context.Context) (*Event, error)
	// RequestDelay asks the host to wait for wish at a shutdown, and returns how long it will. If
	// the error is a *[DelayCappedError], granted is valid too.
	RequestDelay(ctx context.Context, wish time.Duration) (granted time.Duration, err error)
	// Inhibit takes the lock that delays the shutdown. The lock outlives the session. Its Close
	// lets the host go on.
	Inhibit(ctx context.Context) (io.Closer, error)
	// Close ends the session and closes the channel of events. It does not release a lock.
	Close() error
}

// DelayCappedError says that the host waits for less than it was asked for.
type DelayCappedError struct {
	Requested, Granted time.Duration
	Setting            string // the host's name for its limit, such as InhibitDelayMaxSec; "" if it has none
	Winner             string // the file that sets the limit; "" if not known
}

// Error names both times and, if they are known, the setting and the file.
func (e *DelayCappedError) Error() string {
	text := fmt.Sprintf("the host delays its shutdown by %v at most, %v was asked for", e.Granted, e.Requested)
	switch {
	case e.Setting != "" && e.Winner != "":
		return fmt.Sprintf("%s; %s is set by %s", text, e.Setting, e.Winner)
	case e.Setting != "":
		return fmt.Sprintf("%s; raise %s", text, e.Setting)
	case e.Winner != "":
		return text + "; the limit is set by " + e.Winner
	default:
		return text
	}
}
