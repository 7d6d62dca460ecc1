//go:build linux

package logind

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

// origin is the Origin of this package's events.
const origin = "logind"

// announcements turns logind's signals into events until the bus, logind or the lock is lost.
type announcements struct {
	conn        *conn
	locks       *locks
	files       *delayFiles
	missing     func(loss)
	logger      klog.Logger
	signals     *signalQueue
	events      chan source.Event
	preparation preparation
	loop        sync.WaitGroup // the goroutine of watch
}

// watch is the session's only goroutine that sends events. It ends with the connection.
func (a *announcements) watch(pollInterval, verifyInterval time.Duration) {
	defer close(a.events)
	// Both polls run in this goroutine, so that their results and the signals are handled in order.
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	verify := time.NewTicker(verifyInterval)
	defer verify.Stop()
	for a.conn.Connected() { // select may choose a ticker although the connection has ended
		select {
		case <-a.signals.arrived:
			for _, signal := range a.signals.take() {
				if !a.handle(signal) {
					return
				}
			}
		case <-a.conn.Context().Done():
			return
		case <-poll.C:
			a.pollCancellation()
		case <-verify.C:
			if a.locks.lost() {
				return
			}
		}
	}
}

// handle handles one signal. It returns false if logind's bus name has a new owner.
func (a *announcements) handle(signal *dbus.Signal) bool {
	if signal.Sender == "" {
		a.missing(lossSenders)
	}
	if signal.Name == dbusName+"."+nameOwnerChanged {
		return a.sameOwner(signal.Body)
	}
	a.handlePrepare(signal)
	return true
}

// sameOwner reports whether logind's bus name still belongs to the process of this session. The bus
// never gives the unique name of a process to another one.
func (a *announcements) sameOwner(body []any) bool {
	var name, before, after string // after is "" while logind is not running
	owner := a.signals.ownerName()
	if err := dbus.Store(body, &name, &before, &after); err != nil || name != login1 || after == owner && owner != "" {
		return true
	}
	a.logger.V(1).Info("The systemd-logind that was watched is gone", "owner", owner, "newOwner", after)
	return false
}

// handlePrepare handles PrepareForShutdown and PrepareForShutdownWithMetadata. logind
// sends both for one shutdown; the first one makes the event.
func (a *announcements) handlePrepare(signal *dbus.Signal) {
	active, kind, ok := parsePrepare(signal.Body)
	switch {
	case !ok:
		a.logger.Info("Ignored a signal of systemd-logind with a malformed body", "signal", signal.Name)
	case !a.preparation.signalled(active, signal.Sequence):
	case active:
		a.send(source.Event{Kind: kind, Deadline: a.deadline(), Origin: origin})
	default:
		a.send(source.Event{Cancelled: true, Kind: kind, Origin: origin})
	}
}

// deadline returns when logind goes on with a shutdown that it has just announced: now plus
// the current limit. That is too late by the time that the signal took, because logind has
// armed its timer just before; a later reload does not change the timer. While this process changes
// the limit, the lower one counts. If the limit cannot be read within a second, there is no deadline.
func (a *announcements) deadline() time.Time {
	ctx, cancel := a.conn.callContext()
	defer cancel()
	now, before := time.Now(), a.files.changing.Load()
	limit, err := a.conn.limit(ctx)
	if before != nil {
		limit = min(limit, *before)
	}
	switch {
	case err != nil:
		a.logger.V(1).Info("The end of the shutdown delay is not known", "err", err)
		return time.Time{}
	case limit == unlimited:
		return time.Time{}
	default:
		return now.Add(limit)
	}
}

// pending returns the shutdown that is under way, or nil, as Session.Pending does.
func (a *announcements) pending(ctx context.Context) (*source.Event, error) {
	preparing, at, err := a.readPreparing(ctx)
	if isUnknown(err) {
		a.missing(lossPreparing)
		return nil, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	if err != nil || !preparing {
		return nil, err
	}
	kind := a.conn.pendingKind(ctx)
	if !a.preparation.confirmed(at) {
		return nil, nil
	}
	return &source.Event{Kind: kind, Origin: origin}, nil
}

// readPreparing reads PreparingForShutdown: whether a shutdown is delayed or under way.
// logind sends no change signal for it.
func (a *announcements) readPreparing(ctx context.Context) (preparing bool, at dbus.Sequence, err error) {
	at, err = a.conn.property(ctx, "PreparingForShutdown", &preparing)
	if err == nil && !preparing {
		a.preparation.denied(at)
	}
	return preparing, at, err
}

// pollCancellation sends a cancellation for a shutdown that is over without a signal. A
// logind that does not answer has cancelled nothing.
func (a *announcements) pollCancellation() {
	if !a.preparation.known() {
		return
	}
	ctx, cancel := a.conn.callContext()
	defer cancel()
	if _, _, err := a.readPreparing(ctx); err == nil && a.preparation.ended() {
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
