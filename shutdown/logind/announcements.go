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

// announcements turns logind's signals into events until the bus, logind or a lock is lost.
type announcements struct {
	conn        *conn
	locks       *locks
	files       *delayFiles
	missing     func(feature)
	logger      klog.Logger
	signals     *signalQueue
	events      chan source.Event
	preparation preparation
	loop        sync.WaitGroup // the goroutine of watch
}

// watch runs in the only goroutine that sends events. It ends with the connection.
func (a *announcements) watch(pollInterval, verifyInterval time.Duration) {
	defer close(a.events)
	// Both polls run here, so that their results and the signals are handled in order.
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
			if a.locks.isLost() {
				return
			}
		}
	}
}

// handle handles one signal. It returns false if logind's bus name has a new owner.
func (a *announcements) handle(signal *dbus.Signal) bool {
	if signal.Sender == "" {
		a.missing(featureSenders)
	}
	if signal.Name == dbusName+"."+nameOwnerChanged {
		return a.sameOwner(signal.Body)
	}
	a.handlePrepare(signal)
	return true
}

// sameOwner reports whether logind's bus name still belongs to this session's process. The bus never
// reuses unique names.
func (a *announcements) sameOwner(body []any) bool {
	var name, before, after string // after is "" while logind is not running
	owner := a.signals.ownerName()
	if err := dbus.Store(body, &name, &before, &after); err != nil || name != login1 || after == owner && owner != "" {
		return true
	}
	a.logger.V(1).Info("systemd-logind's bus name has a new owner", "owner", owner, "newOwner", after)
	return false
}

// handlePrepare handles PrepareForShutdown and PrepareForShutdownWithMetadata. logind sends both for
// one shutdown; the first one makes the event.
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

// deadline returns the time at which logind shuts down: now plus the limit. logind's timer started
// slightly before, and a later reload does not change it. While this process changes the limit, the lower one counts. If
// the limit cannot be read within 1 s, there is no deadline.
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
		a.logger.V(1).Info("Failed to read the deadline of the shutdown", "err", err)
		return time.Time{}
	case limit == unlimited:
		return time.Time{}
	default:
		return now.Add(limit)
	}
}

// pending implements session.Pending.
func (a *announcements) pending(ctx context.Context) (*source.Event, error) {
	preparing, at, err := a.readPreparing(ctx)
	if isUnknown(err) {
		a.missing(featurePreparing)
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

// readPreparing reads PreparingForShutdown. logind does not announce its changes.
func (a *announcements) readPreparing(ctx context.Context) (preparing bool, at dbus.Sequence, err error) {
	at, err = a.conn.property(ctx, "PreparingForShutdown", &preparing)
	if err == nil && !preparing {
		a.preparation.denied(at)
	}
	return preparing, at, err
}

// pollCancellation sends the cancellation of a shutdown that ended without a signal.
func (a *announcements) pollCancellation() {
	if !a.preparation.isInProgress() {
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
