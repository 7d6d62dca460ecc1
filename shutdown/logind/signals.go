//go:build linux

package logind

import (
	"sync"

	"github.com/godbus/dbus/v5"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

const (
	prepareForShutdown             = "PrepareForShutdown"
	prepareForShutdownWithMetadata = "PrepareForShutdownWithMetadata" // v255 and later, sent before the plain one
	dbusName                       = "org.freedesktop.DBus"
	nameOwnerChanged               = "NameOwnerChanged"
)

// signalQueue keeps the signals about logind's owner and about shutdowns, in order, until
// the session takes them. It drops all other signals when they arrive: every user of the
// bus can send signals directly to a connection, without a match and at any rate.
type signalQueue struct {
	arrived chan struct{} // of size 1: the queue has signals

	mu    sync.Mutex // guards the fields below; never held while anything blocks
	owner string     // the unique bus name of logind; "": not known yet
	queue []*dbus.Signal
}

var _ dbus.SignalHandler = (*signalQueue)(nil)

func newSignalQueue() *signalQueue { return &signalQueue{arrived: make(chan struct{}, 1)} }

// setOwner makes the queue accept the signals of this logind process.
func (q *signalQueue) setOwner(owner string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.owner = owner
}

// DeliverSignal implements [dbus.SignalHandler]. godbus calls it for one signal after the other.
func (q *signalQueue) DeliverSignal(_, _ string, signal *dbus.Signal) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.accepts(signal) {
		return
	}
	q.queue = append(q.queue, signal)
	select {
	case q.arrived <- struct{}{}:
	default: // the session knows already
	}
}

// accepts decides by the sender, which the bus sets and nobody can forge. The caller
// holds the mutex.
func (q *signalQueue) accepts(signal *dbus.Signal) bool {
	switch signal.Sender {
	case dbusName:
		return signal.Name == dbusName+"."+nameOwnerChanged
	case q.owner:
		return signal.Path == login1Path &&
			(signal.Name == login1Manager+"."+prepareForShutdown || signal.Name == login1Manager+"."+prepareForShutdownWithMetadata)
	default:
		return false
	}
}

// take removes and returns the queued signals.
func (q *signalQueue) take() []*dbus.Signal {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.queue
	q.queue = nil
	return taken
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

// parsePrepare reads the body of PrepareForShutdown or PrepareForShutdownWithMetadata. ok is false
// if the body does not have the documented types. Metadata of other types leave the kind unknown.
func parsePrepare(body []any) (active bool, kind source.Kind, ok bool) {
	if len(body) == 0 {
		return false, source.KindUnknown, false
	}
	active, ok = body[0].(bool)
	if ok && len(body) > 1 {
		metadata, _ := body[1].(map[string]dbus.Variant)
		kind = kindOf(metadata)
	}
	return active, kind, ok
}

// kindOf reads the type from logind's metadata. The manual documents power-off, but
// logind sends poweroff. Other types are [source.KindUnknown].
func kindOf(metadata map[string]dbus.Variant) source.Kind {
	name, _ := metadata["type"].Value().(string)
	switch kind := source.Kind(name); kind {
	case "power-off":
		return source.KindPoweroff
	case source.KindPoweroff, source.KindReboot, source.KindHalt, source.KindKexec, source.KindSoftReboot:
		return kind
	default:
		return source.KindUnknown
	}
}
