//go:build linux

package logind

import (
	"sync"

	"github.com/godbus/dbus/v5"
)

// preparation knows whether logind has a shutdown in progress. Signals and replies say so, and different
// goroutines handle them. Each has a sequence number: the message that arrived last counts, even if it is not
// handled last.
type preparation struct {
	mu         sync.Mutex // guards the fields below; never held while anything blocks
	inProgress bool
	newest     dbus.Sequence // the message that set inProgress
	idle       dbus.Sequence // the newest reply that no shutdown is in progress
}

// signalled handles the signal of an announcement or, if active is false, of a cancellation. at is the signal's sequence
// number. isNews is false if the signal repeats what is known, or is outdated:
//
//   - A signal is outdated if a message that arrived later has been handled already.
//   - An announcement is also outdated if a later reply says that no shutdown is in progress: it must not kill pods.
func (p *preparation) signalled(active bool, at dbus.Sequence) (isNews bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	isOutdated := at < p.newest || active && at < p.idle
	if isOutdated {
		return false
	}
	isNewShutdown := active && p.newest < p.idle // a reply has said that the known shutdown is over
	isNews = p.inProgress != active || isNewShutdown
	p.inProgress, p.newest = active, at
	return isNews
}

// confirmed handles a reply with the sequence number at that a shutdown is in progress. It reports whether a shutdown is
// in progress: not if a newer message has said that it is over.
func (p *preparation) confirmed(at dbus.Sequence) (isInProgress bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at > max(p.newest, p.idle) && !p.inProgress {
		p.inProgress, p.newest = true, at
	}
	return p.inProgress
}

// denied handles a reply that no shutdown is in progress. It does not end the known shutdown, because that must be
// cancelled in an event: endIfDenied ends it, and its caller sends the event.
func (p *preparation) denied(at dbus.Sequence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = max(p.idle, at)
}

// endIfDenied ends the known shutdown if a reply that arrived after the shutdown's last message says that none is in
// progress. ended says that the caller must send the cancellation.
func (p *preparation) endIfDenied() (ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.inProgress || p.newest > p.idle {
		return false
	}
	p.inProgress = false
	return true
}

// isInProgress reports whether a shutdown is known to be in progress. A reply may have denied it already (endIfDenied).
func (p *preparation) isInProgress() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inProgress
}
