//go:build linux

package logind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/logindconf"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// origin is the Origin of this package's events.
const origin = "logind"

// announcements turns logind's signals into the session's events. It ends the session when the connection to
// the bus ends, logind is restarted, or logind has lost the lock.
type announcements struct {
	conn        *conn
	locks       *locks
	files       *delayFiles
	logMissing  func(feature)
	logger      klog.Logger
	signals     *signalQueue
	events      chan source.Event
	preparation preparation
	loop        sync.WaitGroup // the goroutine of watch
}

// watch sends all events of the session, and closes the channel when the session has ended. It is the only
// goroutine that sends them, so that they keep logind's order.
func (a *announcements) watch(pollInterval, verifyInterval time.Duration) {
	defer close(a.events)
	// Both polls run in this goroutine too, so that no signal is handled in the middle of a poll.
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	verify := time.NewTicker(verifyInterval)
	defer verify.Stop()
	for a.conn.Connected() { // select may choose a ticker although the connection has ended
		select {
		case <-a.signals.arrived:
			if isSessionOver := slices.ContainsFunc(a.signals.take(), a.handle); isSessionOver {
				return
			}
		case <-a.conn.Context().Done():
			return
		case <-poll.C:
			a.pollCancellation()
		case <-verify.C:
			if a.locks.isLost() {
				return
			}
		}
	}
}

// handle handles one signal. It reports whether the session must end, because logind was restarted or stopped.
func (a *announcements) handle(signal *dbus.Signal) (isSessionOver bool) {
	if signal.Sender == "" { // the bus does not say who has sent a signal
		a.logMissing(featureSenders)
	}
	if signal.Name == dbusName+"."+nameOwnerChanged {
		return a.isOwnerReplaced(signal.Body)
	}
	a.handlePrepare(signal)
	return false
}

// isOwnerReplaced reads the body of a NameOwnerChanged signal. It reports whether the logind process of this session
// has lost logind's bus name. The bus never gives a process the unique name of an earlier process.
func (a *announcements) isOwnerReplaced(body []any) bool {
	var name, oldOwner, newOwner string // newOwner is "" while logind is not running
	owner := a.signals.ownerName()
	err := dbus.Store(body, &name, &oldOwner, &newOwner)
	isAboutLogind := err == nil && name == login1
	isSameProcess := owner != "" && newOwner == owner // it started while subscribe ran, so the session already has its name
	if !isAboutLogind || isSameProcess {
		return false
	}
	a.logger.V(1).Info("systemd-logind's bus name has a new owner", "owner", owner, "newOwner", newOwner)
	return true
}

// handlePrepare handles PrepareForShutdown and PrepareForShutdownWithMetadata, which logind sends when a shutdown begins
// or is cancelled. A new logind sends both: the one that arrives first becomes an event, and the other says nothing new.
func (a *announcements) handlePrepare(signal *dbus.Signal) {
	active, kind, ok := parsePrepare(signal.Body)
	switch {
	case !ok:
		a.logger.Info("Ignored a signal of systemd-logind with a malformed body", "signal", signal.Name)
	case !a.preparation.noteSignal(active, signal.Sequence): // repeated or outdated
	case active:
		a.send(source.Event{Kind: kind, Deadline: a.deadline(), Origin: origin})
	default:
		a.send(source.Event{Cancelled: true, Kind: kind, Origin: origin})
	}
}

// deadline returns the time at which logind shuts down: now plus the limit. logind has just started its timer,
// and a later reload does not change it. While this process changes the limit, the timer may have the old or
// the new limit, so the lower one counts. If there is no limit, or it cannot be read within 1 s, the result is zero.
func (a *announcements) deadline() time.Time {
	ctx, cancel := a.conn.callContext()
	defer cancel()
	now, limitBeforeChange := time.Now(), a.files.limitBeforeChange.Load()
	limit, err := a.conn.limit(ctx)
	if limitBeforeChange != nil {
		limit = min(limit, *limitBeforeChange)
	}
	switch {
	case err != nil:
		a.logger.V(1).Info("Failed to read the deadline of the shutdown", "err", err)
		return time.Time{}
	case limit == logindconf.Unlimited:
		return time.Time{}
	default:
		return now.Add(limit)
	}
}

// pending returns the shutdown that logind says is in progress, or nil (session.Pending). If logind cannot say, the error
// wraps [errors.ErrUnsupported].
func (a *announcements) pending(ctx context.Context) (*source.Event, error) {
	preparing, reply, err := a.readPreparing(ctx)
	if isMissingFeature(err) {
		a.logMissing(featurePreparing)
		return nil, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	if err != nil || !preparing {
		return nil, err
	}
	kind := a.conn.pendingKind(ctx)
	if isInProgress := a.preparation.noteConfirmation(reply); !isInProgress { // cancelled since the reply
		return nil, nil
	}
	return &source.Event{Kind: kind, Origin: origin}, nil
}

// readPreparing asks logind whether a shutdown is in progress (preparing). If not, it tells a.preparation so. The result
// reply is the sequence number of logind's reply, which says which signals arrived before the reply.
func (a *announcements) readPreparing(ctx context.Context) (preparing bool, reply dbus.Sequence, err error) {
	reply, err = a.conn.property(ctx, "PreparingForShutdown", &preparing)
	if err == nil && !preparing {
		a.preparation.noteDenial(reply)
	}
	return preparing, reply, err
}

// pollCancellation asks logind whether the announced shutdown is still in progress. If not, it sends the cancellation.
// logind sends no signal when a delayed shutdown is cancelled (v257 and later).
func (a *announcements) pollCancellation() {
	if !a.preparation.isInProgress() {
		return
	}
	ctx, cancel := a.conn.callContext()
	defer cancel()
	_, _, err := a.readPreparing(ctx) // if the answer is no, a.preparation knows it now
	if err == nil && a.preparation.endIfDenied() {
		a.send(source.Event{Cancelled: true, Origin: origin})
	}
}

// send blocks until the event is received or the session ends.
func (a *announcements) send(event source.Event) {
	select {
	case a.events <- event:
	case <-a.conn.Context().Done():
	}
}
