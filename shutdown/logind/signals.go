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

// signalQueue queues two kinds of signals until the session takes them: those about a new owner of logind's bus
// name, and announcements of shutdowns. It drops all others on arrival: every user of the bus can send signals
// directly to a connection, and must not fill the queue or announce a shutdown.
type signalQueue struct {
	arrived chan struct{} // of size 1: the queue is not empty

	mu         sync.Mutex // guards the fields below; never held while anything blocks
	ownerKnown bool       // setOwner was called
	owner      string     // logind's unique bus name; "": the bus does not say who is logind
	queue      []*dbus.Signal
}

var _ dbus.SignalHandler = (*signalQueue)(nil)

// newSignalQueue returns an empty queue, which accepts no announcements until setOwner.
func newSignalQueue() *signalQueue { return &signalQueue{arrived: make(chan struct{}, 1)} }

// setOwner makes the queue accept announcements from the logind process with this unique bus name; "": from every
// sender, because the bus does not say who is logind.
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

// accepts reports whether a signal is one of the two kinds that the session needs, and comes from the right sender:
//
//   - The bus says that a bus name has a new owner.
//   - logind announces a shutdown, once setOwner was called. The interface is not checked: on Talos it is logind's bus name,
//     and the kubelet does not check it either.
//
// The bus sets the sender, so it can be trusted. Some buses set none: every sender is then accepted. The caller holds the mutex.
func (q *signalQueue) accepts(signal *dbus.Signal) bool {
	isFrom := func(sender string) bool { return signal.Sender == sender || signal.Sender == "" }
	if signal.Name == dbusName+"."+nameOwnerChanged {
		return isFrom(dbusName)
	}
	isAnnouncement := strings.HasSuffix(signal.Name, "."+prepareForShutdown) || strings.HasSuffix(signal.Name, "."+prepareForShutdownWithMetadata)
	isFromLogind := q.owner == "" || isFrom(q.owner) // "": the bus does not say who is logind
	if !q.ownerKnown || !isFromLogind {
		return false
	}
	return isAnnouncement && signal.Path == login1Path
}

// take removes and returns the queued signals.
func (q *signalQueue) take() []*dbus.Signal {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.queue
	q.queue = nil
	return taken
}

// subscribe makes the bus send the signals that the queue accepts, in three steps:
//
//   - It subscribes to changes of the owner of logind's bus name, so that it misses no restart of logind.
//   - It finds the current owner, so that the queue can drop the signals of other senders.
//   - It subscribes to logind's announcements.
//
// A feature that the bus or logind lacks, and the session works without, is passed to logMissing. Any other failure is an
// error.
func (q *signalQueue) subscribe(ctx context.Context, c *conn, logMissing missingLogger) error {
	if !c.transport.passesDescriptors {
		logMissing(featureNegotiation)
	}
	err := c.match(ctx, logMissing, kubeletRule(dbusPath, dbusName, nameOwnerChanged), dbus.WithMatchSender(dbusName), dbus.WithMatchArg(0, login1))
	if err := logMissing.tolerate(err, featureOwnerChanges); err != nil {
		return fmt.Errorf("subscribe to the owners of %s: %w", login1, err)
	}
	// A call to the well-known name makes the bus start a logind that is not running yet.
	if _, err := c.limit(ctx); err != nil {
		return err
	}
	owner, err := c.owner(ctx)
	if err := logMissing.tolerate(err, featureOwner); err != nil {
		return err
	}
	q.setOwner(owner)
	err = c.match(ctx, logMissing, kubeletRule(login1Path, login1Manager, prepareForShutdown), dbus.WithMatchSender(login1))
	if err == nil {
		err = c.match(ctx, logMissing, kubeletRule(login1Path, login1Manager, prepareForShutdownWithMetadata), dbus.WithMatchSender(login1))
		err = logMissing.tolerate(err, featureMetadata)
	}
	if err != nil {
		return fmt.Errorf("subscribe to logind's signals: %w", err)
	}
	return nil
}

// missingLogger logs that the bus or logind lacks a feature, and that the session works without it.
type missingLogger func(feature)

// tolerate returns err, unless err says that the feature is missing: it is then only logged.
func (log missingLogger) tolerate(err error, f feature) error {
	if isMissingFeature(err) {
		log(f)
		return nil
	}
	return err
}

// kubeletRule returns the kubelet's match rule for a signal.
func kubeletRule(path dbus.ObjectPath, iface, member string) []dbus.MatchOption {
	return []dbus.MatchOption{dbus.WithMatchObjectPath(path), dbus.WithMatchInterface(iface), dbus.WithMatchMember(member)}
}

// match subscribes with a match rule and senderRule, which keeps out other senders. If the bus refuses senderRule, it subscribes
// without it.
func (c *conn) match(ctx context.Context, logMissing missingLogger, rule []dbus.MatchOption, senderRule ...dbus.MatchOption) error {
	err := c.AddMatchSignalContext(ctx, slices.Concat(rule, senderRule)...)
	if !isMissingFeature(err) {
		return err
	}
	if err := c.AddMatchSignalContext(ctx, rule...); err != nil {
		return err
	}
	logMissing(featureMatches)
	return nil
}

// parsePrepare reads the body of PrepareForShutdown or PrepareForShutdownWithMetadata. active says whether the
// signal announces a shutdown or cancels it. ok is false if the body does not begin with a bool. Invalid
// metadata leaves the kind unknown.
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

// kindOf reads the kind from logind's metadata. It accepts power-off, which the manual names, and poweroff,
// which logind sends. A kind that is not in [source.Kinds] becomes [source.KindUnknown].
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
