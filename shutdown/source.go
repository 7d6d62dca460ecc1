package shutdown

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Kind says what the host is going to do, in logind's own words.
type Kind string

const (
	// KindUnknown means that the source cannot tell; it is treated as a power off.
	KindUnknown Kind = ""
	// KindPoweroff switches the machine off. This and the following are the types of
	// logind's PrepareForShutdownWithMetadata.
	KindPoweroff Kind = "poweroff"
	// KindReboot starts the machine again.
	KindReboot Kind = "reboot"
	// KindHalt stops the machine and leaves it switched on.
	KindHalt Kind = "halt"
	// KindKexec starts another kernel without the firmware.
	KindKexec Kind = "kexec"
	// KindSoftReboot starts user space again under the same kernel.
	KindSoftReboot Kind = "soft-reboot"
)

// Event is what a host says about its shutdown. The zero value is a shutdown
// that begins now, of which nothing more is known.
type Event struct {
	Cancelled bool      // the shutdown that was announced will not happen
	Kind      Kind      // what the host is going to do
	Deadline  time.Time // when it does it at the latest; zero: not known
	Origin    string    // who says so, for the report: "logind", "SIGTERM"
}

// Source is a host that can announce its shutdown and be delayed.
type Source interface {
	// Connect returns a session that is subscribed: an event that the host
	// sends after Connect has returned is not lost.
	Connect(ctx context.Context) (Session, error)
}

// Session is one connection to a host. Its methods may be called concurrently.
type Session interface {
	// Events gives the host's events in order. It is closed when the host, or
	// the lock that was taken, is lost.
	Events() <-chan Event
	// Pending gives the shutdown that is under way, nil if there is none. A host that
	// cannot tell gives an error that wraps [errors.ErrUnsupported]: that fails no
	// session, and nothing is concluded from it.
	Pending(ctx context.Context) (*Event, error)
	// RequestDelay asks the host to wait for wish, and says how long it will.
	// With a *[DelayCappedError] the granted time counts all the same.
	RequestDelay(ctx context.Context, wish time.Duration) (granted time.Duration, err error)
	// Inhibit takes the lock that delays the shutdown. The lock outlives the
	// session; closing it lets the host go on.
	Inhibit(ctx context.Context) (io.Closer, error)
	// Close ends the session and closes its events. It does not release a lock.
	Close() error
}

// DelayCappedError says that the host waits for less than it was asked to.
type DelayCappedError struct {
	Requested, Granted time.Duration
	Setting            string // the host's own name of its limit, as InhibitDelayMaxSec; "" if it has none
	Winner             string // the file that sets the limit, "" if not known
}

// Error names both times and, where they are known, the setting and the file that wins.
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
