//go:build linux

package logind

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/godbus/dbus/v5"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

const (
	prepareForShutdown             = "PrepareForShutdown"
	prepareForShutdownWithMetadata = "PrepareForShutdownWithMetadata" // v255 and later, sent before the plain one
	dbusName                       = "org.freedesktop.DBus"
	dbusPath                       = dbus.ObjectPath("/org/freedesktop/DBus")
	nameOwnerChanged               = "NameOwnerChanged"
)

// signalQueue keeps the signals about logind's owner and about shutdowns, in order, until
// the session takes them. It drops all other signals when they arrive: every user of the
// bus can send signals directly to a connection, without a match and at any rate.
type signalQueue struct {
	arrived chan struct{} // of size 1: the queue has signals

	mu    sync.Mutex // guards the fields below; never held while anything blocks
	known bool       // owner is known, or it is known that the bus does not tell
	owner string     // the unique bus name of logind; "": the bus does not tell
	queue []*dbus.Signal
}

var _ dbus.SignalHandler = (*signalQueue)(nil)

func newSignalQueue() *signalQueue { return &signalQueue{arrived: make(chan struct{}, 1)} }

// setOwner makes the queue accept the signals of this logind process, or those of everybody if
// owner is empty.
func (q *signalQueue) setOwner(owner string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.known, q.owner = true, owner
}

// ownerName returns the unique bus name of logind, or "" if the bus does not tell.
func (q *signalQueue) ownerName() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.owner
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

// accepts decides by the sender, which the bus sets and nobody can forge. A signal without a sender
// is accepted, because a bus that sets none tells nobody's signals apart. So is an announcement whose
// interface is not that of logind's manager: on Talos it is logind's bus name, and the kubelet looks at
// neither. The caller holds the mutex.
func (q *signalQueue) accepts(signal *dbus.Signal) bool {
	if signal.Name == dbusName+"."+nameOwnerChanged {
		return signal.Sender == dbusName || signal.Sender == ""
	}
	announces := strings.HasSuffix(signal.Name, "."+prepareForShutdown) || strings.HasSuffix(signal.Name, "."+prepareForShutdownWithMetadata)
	return announces && signal.Path == login1Path && q.known && (signal.Sender == q.owner || signal.Sender == "" || q.owner == "")
}

// take removes and returns the queued signals.
func (q *signalQueue) take() []*dbus.Signal {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.queue
	q.queue = nil
	return taken
}

// subscribe asks for the changes of logind's owner, finds the owner, and asks for logind's signals.
// It asks for the changes first, so that none is missed, and for the signals when it knows the owner,
// so that those of other senders are dropped. What the bus lacks is told to missing.
func (q *signalQueue) subscribe(ctx context.Context, c *conn, missing func(loss)) error {
	lacks := func(err error, l loss) error {
		if !isUnknown(err) {
			return err
		}
		missing(l)
		return nil
	}
	// match asks for a signal as the kubelet does, and with exact, which keeps the bus from delivering
	// those of other processes, if the bus can do that.
	match := func(path dbus.ObjectPath, iface, member string, exact ...dbus.MatchOption) error {
		kubelets := []dbus.MatchOption{dbus.WithMatchObjectPath(path), dbus.WithMatchInterface(iface), dbus.WithMatchMember(member)}
		err := c.AddMatchSignalContext(ctx, slices.Concat(kubelets, exact)...)
		if !isUnknown(err) {
			return err
		}
		if err := c.AddMatchSignalContext(ctx, kubelets...); err != nil {
			return err
		}
		missing(lossMatches)
		return nil
	}
	if !c.transport.agreed {
		missing(lossAgreement)
	}
	if err := lacks(match(dbusPath, dbusName, nameOwnerChanged, dbus.WithMatchSender(dbusName), dbus.WithMatchArg(0, login1)), lossOwnerChanges); err != nil {
		return fmt.Errorf("subscribe to the owners of %s: %w", login1, err)
	}
	// A call to the well-known name makes the bus start a logind that is not running yet.
	if _, err := c.limit(ctx); err != nil {
		return err
	}
	owner, err := c.owner(ctx)
	if err := lacks(err, lossOwner); err != nil {
		return err
	}
	q.setOwner(owner)
	err = match(login1Path, login1Manager, prepareForShutdown, dbus.WithMatchSender(login1))
	if err == nil {
		err = lacks(match(login1Path, login1Manager, prepareForShutdownWithMetadata, dbus.WithMatchSender(login1)), lossMetadata)
	}
	if err != nil {
		return fmt.Errorf("subscribe to logind's signals: %w", err)
	}
	return nil
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
	switch kind := source.Kind(name); {
	case kind == "power-off":
		return source.KindPoweroff
	case slices.Contains(source.Kinds(), kind):
		return kind
	default:
		return source.KindUnknown
	}
}
