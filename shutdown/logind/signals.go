//go:build linux

package logind

import (
	"context"
	"fmt"
	"sync"

	"github.com/godbus/dbus/v5"

	"github.com/kubegrace/kubegrace/shutdown"
)

const (
	prepareForShutdown             = "PrepareForShutdown"
	prepareForShutdownWithMetadata = "PrepareForShutdownWithMetadata" // v255 and later, sent before the plain one
	dbusName                       = "org.freedesktop.DBus"
	nameOwnerChanged               = "NameOwnerChanged"
)

// signalQueue keeps what the bus says of logind's owner and what logind says of
// shutdowns, in order, until the session takes it. All else is dropped where it is
// read: everybody may send a signal to us directly, which needs no match, as fast as
// he likes.
type signalQueue struct {
	more chan struct{} // of size 1: there is something to take

	mu    sync.Mutex // guards all below; never held while anything blocks
	owner string     // of logind's name; "": not known yet
	queue []*dbus.Signal
}

var _ dbus.SignalHandler = (*signalQueue)(nil)

func newSignalQueue() *signalQueue { return &signalQueue{more: make(chan struct{}, 1)} }

// listenTo names the logind whose signals count from now on.
func (q *signalQueue) listenTo(owner string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.owner = owner
}

// DeliverSignal is called by godbus for one signal after the other.
func (q *signalQueue) DeliverSignal(_, _ string, signal *dbus.Signal) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.counts(signal) {
		return
	}
	q.queue = append(q.queue, signal)
	select {
	case q.more <- struct{}{}:
	default: // it is known
	}
}

// counts goes by the sender, which the bus sets and nobody can forge. The mutex is
// held.
func (q *signalQueue) counts(signal *dbus.Signal) bool {
	switch signal.Sender {
	case dbusName:
		return signal.Name == dbusName+"."+nameOwnerChanged
	case q.owner:
		return signal.Path == login1Path && isPrepare(signal.Name)
	default:
		return false
	}
}

// take gives what has come since.
func (q *signalQueue) take() []*dbus.Signal {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.queue
	q.queue = nil
	return taken
}

// subscribe asks the bus for signals. The sender is part of each match, so that no
// other process can broadcast one.
func (c *conn) subscribe(ctx context.Context, matches ...[]dbus.MatchOption) error {
	for _, match := range matches {
		if err := c.AddMatchSignalContext(ctx, match...); err != nil {
			return fmt.Errorf("subscribe to logind's signals: %w", err)
		}
	}
	return nil
}

func ownerChanges() []dbus.MatchOption {
	return []dbus.MatchOption{
		dbus.WithMatchSender(dbusName), dbus.WithMatchInterface(dbusName),
		dbus.WithMatchMember(nameOwnerChanged), dbus.WithMatchArg(0, login1),
	}
}

func fromLogin1(member string) []dbus.MatchOption {
	return []dbus.MatchOption{
		dbus.WithMatchSender(login1), dbus.WithMatchObjectPath(login1Path),
		dbus.WithMatchInterface(login1Manager), dbus.WithMatchMember(member),
	}
}

// announcement is what a PrepareForShutdown says.
type announcement struct {
	active bool
	kind   shutdown.Kind
}

// announced reads the body of either signal. ok is false for a body that is not
// as documented; bad metadata leave the kind unknown.
func announced(body []any) (a announcement, ok bool) {
	if len(body) == 0 {
		return announcement{}, false
	}
	if a.active, ok = body[0].(bool); !ok {
		return announcement{}, false
	}
	if len(body) > 1 {
		metadata, _ := body[1].(map[string]dbus.Variant)
		a.kind = kindOf(metadata)
	}
	return a, true
}

// kindOf reads the type from logind's metadata. The manual writes power-off
// where logind sends poweroff; a type that is not known is [shutdown.KindUnknown].
func kindOf(metadata map[string]dbus.Variant) shutdown.Kind {
	name, _ := metadata["type"].Value().(string)
	switch kind := shutdown.Kind(name); kind {
	case "power-off":
		return shutdown.KindPoweroff
	case shutdown.KindPoweroff, shutdown.KindReboot, shutdown.KindHalt, shutdown.KindKexec, shutdown.KindSoftReboot:
		return kind
	default:
		return shutdown.KindUnknown
	}
}
