//go:build linux

package logind

import (
	"sync"

	"github.com/godbus/dbus/v5"
)

// preparation is what is known of the shutdown that logind prepares. The sequence numbers of
// the connection order signals and replies: the message that arrived last counts, whichever
// goroutine handles it first.
type preparation struct {
	mu       sync.Mutex // guards the fields below; never held while anything blocks
	underWay bool
	newest   dbus.Sequence // of the message that underWay is from
	idle     dbus.Sequence // of the last reply that no shutdown is under way
}

// signalled handles a signal that announces a shutdown or, if active is false, cancels it. It
// reports whether that is news. An announcement before a reply that no shutdown is under way is
// none, because its shutdown is over and must not kill pods.
func (p *preparation) signalled(active bool, at dbus.Sequence) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at < p.newest || active && at < p.idle {
		return false
	}
	over := p.newest < p.idle // what was known before
	news = p.underWay != active || active && over
	p.underWay, p.newest = active, at
	return news
}

// confirmed handles a reply that a shutdown is under way. It returns false if a newer message
// has said that it is over.
func (p *preparation) confirmed(at dbus.Sequence) (underWay bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at > max(p.newest, p.idle) && !p.underWay {
		p.underWay, p.newest = true, at
	}
	return p.underWay
}

// denied handles a reply that no shutdown is under way. It does not end the one that is known:
// ended does, whose caller sends the cancellation.
func (p *preparation) denied(at dbus.Sequence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = max(p.idle, at)
}

// ended ends the shutdown that is known, if the last reply that none is under way is newer. It
// reports whether there was one to end.
func (p *preparation) ended() (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.underWay || p.newest > p.idle {
		return false
	}
	p.underWay = false
	return true
}

// known reports whether a shutdown is known to be under way.
func (p *preparation) known() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.underWay
}
