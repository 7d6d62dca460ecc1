//go:build linux

package logind

import (
	"sync"

	"github.com/godbus/dbus/v5"
)

// preparation knows whether logind has a shutdown in progress. logind's signals and replies say that, and different
// goroutines handle them, in any order. Each has a sequence number, by its arrival: the message that arrived last counts,
// even if it is not handled last.
type preparation struct {
	mu              sync.Mutex // guards the fields below; never held while anything blocks
	inProgress      bool
	inProgressSetBy dbus.Sequence // the message that set inProgress
	lastDenial      dbus.Sequence // the newest reply that no shutdown is in progress
}

// noteSignal handles an announcement or, if active is false, a cancellation. signal is its sequence number. isNews is
// false if the signal repeats what is known, or is outdated:
//
//   - A signal is outdated if a message that arrived later has been handled already.
//   - An announcement is also outdated if a later reply says that no shutdown is in progress: it must not kill pods.
func (p *preparation) noteSignal(active bool, signal dbus.Sequence) (isNews bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	isSuperseded := signal < p.inProgressSetBy
	isDenied := active && signal < p.lastDenial
	if isSuperseded || isDenied {
		return false
	}
	isNewShutdown := active && p.inProgressSetBy < p.lastDenial // a reply has said that the known shutdown is over
	isNews = p.inProgress != active || isNewShutdown
	p.inProgress, p.inProgressSetBy = active, signal
	return isNews
}

// noteConfirmation handles a reply that a shutdown is in progress. reply is its sequence number. isInProgress is false if
// a message that arrived later has said that the shutdown is over.
func (p *preparation) noteConfirmation(reply dbus.Sequence) (isInProgress bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	isNewest := reply > max(p.inProgressSetBy, p.lastDenial)
	if isNewest && !p.inProgress {
		p.inProgress, p.inProgressSetBy = true, reply
	}
	return p.inProgress
}

// noteDenial handles a reply that no shutdown is in progress. It does not end the known shutdown, because an event must
// report that: endIfDenied ends it, and its caller sends the event.
func (p *preparation) noteDenial(reply dbus.Sequence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastDenial = max(p.lastDenial, reply)
}

// endIfDenied ends the known shutdown if logind has denied it since: after the message that set inProgress, logind replied
// that no shutdown is in progress (noteDenial). endIfDenied returns true if it has ended a shutdown. The caller must then send
// the cancellation.
func (p *preparation) endIfDenied() (ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	isDenied := p.lastDenial > p.inProgressSetBy
	if !p.inProgress || !isDenied {
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
