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

// signalQueue queues signals about logind's owner and shutdowns until the session takes them. It drops
// all others on arrival, because every user of the bus can send signals directly to a connection.
type signalQueue struct {
	arrived chan struct{} // of size 1: the queue is not empty

	mu         sync.Mutex // guards the fields below; never held while anything blocks
	ownerKnown bool       // owner is set
	owner      string     // logind's unique bus name; "": the bus does not say
	queue      []*dbus.Signal
}

var _ dbus.SignalHandler = (*signalQueue)(nil)

func newSignalQueue() *signalQueue { return &signalQueue{arrived: make(chan struct{}, 1)} }

// setOwner accepts the signals of this logind process; "": of every sender.
func (q *signalQueue) setOwner(owner string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ownerKnown, q.owner = true, owner
}

// ownerName returns logind's unique bus name; "": the bus does not say.
func (q *signalQueue) ownerName() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.owner
}

// DeliverSignal implements [dbus.SignalHandler]. godbus does not call it concurrently.
func (q *signalQueue) DeliverSignal(_, _ string, signal *dbus.Signal) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.accepts(signal) {
		return
	}
	q.queue = append(q.queue, signal)
	select {
	case q.arrived <- struct{}{}:
	default: // already signalled
	}
}

// accepts decides by the sender, which the bus sets. Signals without a sender are accepted, because
// such a bus sets none. Announcements with another interface are accepted too: on Talos it is logind's
// bus name, and the kubelet checks neither. The caller holds the mutex.
func (q *signalQueue) accepts(signal *dbus.Signal) bool {
	if signal.Name == dbusName+"."+nameOwnerChanged {
		return signal.Sender == dbusName || signal.Sender == ""
	}
	announces := strings.HasSuffix(signal.Name, "."+prepareForShutdown) || strings.HasSuffix(signal.Name, "."+prepareForShutdownWithMetadata)
	return announces && signal.Path == login1Path && q.ownerKnown && (signal.Sender == q.owner || signal.Sender == "" || q.owner == "")
}

// take removes and returns the queued signals.
func (q *signalQueue) take() []*dbus.Signal {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.queue
	q.queue = nil
	return taken
}

// subscribe subscribes to changes of the owner of logind's bus name, finds the present owner, and then
// subscribes to logind's signals. In this order no change of the owner is missed, and signals of other
// senders can be dropped. It calls missing with each feature that the bus or logind lacks.
func (q *signalQueue) subscribe(ctx context.Context, c *conn, missing func(feature)) error {
	lacks := func(err error, f feature) error {
		if !isUnknown(err) {
			return err
		}
		missing(f)
		return nil
	}
	// match adds the kubelet's match with the options exact, which exclude other senders, or without
	// them if the bus refuses.
	match := func(path dbus.ObjectPath, iface, member string, exact ...dbus.MatchOption) error {
		kubelets := []dbus.MatchOption{dbus.WithMatchObjectPath(path), dbus.WithMatchInterface(iface), dbus.WithMatchMember(member)}
		err := c.AddMatchSignalContext(ctx, slices.Concat(kubelets, exact)...)
		if !isUnknown(err) {
			return err
		}
		if err := c.AddMatchSignalContext(ctx, kubelets...); err != nil {
			return err
		}
		missing(featureMatches)
		return nil
	}
	if !c.transport.passesDescriptors {
		missing(featureNegotiation)
	}
	if err := lacks(match(dbusPath, dbusName, nameOwnerChanged, dbus.WithMatchSender(dbusName), dbus.WithMatchArg(0, login1)), featureOwnerChanges); err != nil {
		return fmt.Errorf("subscribe to the owners of %s: %w", login1, err)
	}
	// A call to the well-known name makes the bus start a logind that is not running yet.
	if _, err := c.limit(ctx); err != nil {
		return err
	}
	owner, err := c.owner(ctx)
	if err := lacks(err, featureOwner); err != nil {
		return err
	}
	q.setOwner(owner)
	err = match(login1Path, login1Manager, prepareForShutdown, dbus.WithMatchSender(login1))
	if err == nil {
		err = lacks(match(login1Path, login1Manager, prepareForShutdownWithMetadata, dbus.WithMatchSender(login1)), featureMetadata)
	}
	if err != nil {
		return fmt.Errorf("subscribe to logind's signals: %w", err)
	}
	return nil
}

// parsePrepare reads the body of PrepareForShutdown or PrepareForShutdownWithMetadata. ok is false if a
// type is wrong. Invalid metadata leaves the kind unknown.
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

// kindOf reads the kind from logind's metadata. The manual says power-off, but logind sends poweroff.
// Others are [source.KindUnknown].
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
