//go:build linux

package logind

import (
	"sync"

	"github.com/godbus/dbus/v5"
)

// preparation is the state of logind's shutdown. The connection's sequence numbers order signals and
// replies: the one that arrived last counts, in whatever order the goroutines handle them.
type preparation struct {
	mu         sync.Mutex // guards the fields below; never held while anything blocks
	inProgress bool
	newest     dbus.Sequence // the message that set inProgress
	idle       dbus.Sequence // the newest reply that no shutdown is in progress
}

// signalled handles an announcement or, if active is false, a cancellation, and reports whether it is
// new. An announcement before a reply that no shutdown is in progress is outdated, and must not kill
// pods.
func (p *preparation) signalled(active bool, at dbus.Sequence) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at < p.newest || active && at < p.idle {
		return false
	}
	over := p.newest < p.idle // the known shutdown
	news = p.inProgress != active || active && over
	p.inProgress, p.newest = active, at
	return news
}

// confirmed handles a reply that a shutdown is in progress. It returns false if a newer message says
// that it is over.
func (p *preparation) confirmed(at dbus.Sequence) (confirmed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at > max(p.newest, p.idle) && !p.inProgress {
		p.inProgress, p.newest = true, at
	}
	return p.inProgress
}

// denied handles a reply that no shutdown is in progress. It does not end a known one: ended does,
// whose caller sends the cancellation.
func (p *preparation) denied(at dbus.Sequence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = max(p.idle, at)
}

// ended ends the known shutdown if a newer reply says that none is in progress. It reports whether it
// did.
func (p *preparation) ended() (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.inProgress || p.newest > p.idle {
		return false
	}
	p.inProgress = false
	return true
}

func (p *preparation) isInProgress() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inProgress
}
