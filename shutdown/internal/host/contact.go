package host

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// answerTimeout is how long the first attempt waits for each answer of the host.
	answerTimeout = 2 * time.Second
	// delayTimeout is how long RequestDelay may take: logind needs up to three seconds if it has
	// to be reloaded.
	delayTimeout = 5 * time.Second
	// reachTimeout is how long a host may take to be reached before a record of a shutdown counts.
	reachTimeout = 5 * time.Second
)

// contact knows how the first attempt to hold the host goes, and tells the listener when it is over
// and when the host is not reached.
type contact struct {
	listener Listener
	trouble  *trouble
	silent   *time.Timer // ends the wait for the next answer of the first attempt
	told     atomic.Bool // HostTried was called
	reached  atomic.Bool // a session has answered Pending or sent an event
}

// newContact begins the wait for the first answer.
func newContact(listener Listener, trouble *trouble) *contact {
	return &contact{listener: listener, trouble: trouble, silent: time.NewTimer(answerTimeout)}
}

// watch tells the listener of a host that is silent or not reached, until ctx ends.
func (c *contact) watch(ctx context.Context) {
	defer c.silent.Stop()
	unreached := time.NewTimer(reachTimeout)
	defer unreached.Stop()
	for {
		select {
		case <-c.silent.C:
			c.trouble.silent()
			c.tried()
		case <-unreached.C:
			if !c.reached.Load() {
				c.listener.HostUnreached()
			}
		case <-ctx.Done():
			return
		}
	}
}

// allow gives the first attempt time for the next answer, unless the host was found silent.
func (c *contact) allow(next time.Duration) {
	if c.silent.Stop() {
		c.silent.Reset(next)
	}
}

// tried ends the first attempt.
func (c *contact) tried() {
	c.silent.Stop()
	if c.told.CompareAndSwap(false, true) {
		c.listener.HostTried()
	}
}
