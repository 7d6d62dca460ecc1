//go:build linux

package logind

import (
	"sync"

	"github.com/godbus/dbus/v5"
)

// preparation knows whether logind has a shutdown in progress. Signals and replies say so, and different
// goroutines handle them. Each has a sequence number of the connection: the message that arrived last counts,
// whichever is handled last.
type preparation struct {
	mu         sync.Mutex // guards the fields below; never held while anything blocks
	inProgress bool
	newest     dbus.Sequence // the message that set inProgress
	idle       dbus.Sequence // the newest reply that no shutdown is in progress
}

// signalled handles the signal of an announcement or, if active is false, of a cancellation, which arrived at the
// sequence number at. news is false if the signal repeats what is known, or is outdated:
//
//   - A signal is outdated if a message that arrived later has been handled already.
//   - An announcement is also outdated if a later reply says that no shutdown is in progress: it must not kill pods.
func (p *preparation) signalled(active bool, at dbus.Sequence) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	isOutdated := at < p.newest || active && at < p.idle
	if isOutdated {
		return false
	}
	isAnother := active && p.newest < p.idle // a reply has said that the known shutdown is over, so this is a new one
	news = p.inProgress != active || isAnother
	p.inProgress, p.newest = active, at
	return news
}

// confirmed handles a reply that a shutdown is in progress, which arrived at the sequence number at. A reply that is
// newer than all other messages makes an unknown shutdown known. The result is false if no shutdown is known: a newer
// message has said that it is over.
func (p *preparation) confirmed(at dbus.Sequence) (confirmed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at > max(p.newest, p.idle) && !p.inProgress {
		p.inProgress, p.newest = true, at
	}
	return p.inProgress
}

// denied handles a reply that no shutdown is in progress. It does not end the known shutdown: endIfDenied does,
// because its caller sends the cancellation.
func (p *preparation) denied(at dbus.Sequence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = max(p.idle, at)
}

// endIfDenied ends the known shutdown if a reply that arrived after its last message says that none is in progress. It
// reports whether it did, so that the caller sends the cancellation.
func (p *preparation) endIfDenied() (ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.inProgress || p.newest > p.idle {
		return false
	}
	p.inProgress = false
	return true
}

// isInProgress reports whether a shutdown is known to be in progress. Its end may not be handled yet.
func (p *preparation) isInProgress() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inProgress
}
