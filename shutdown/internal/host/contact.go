package host

import (
	"context"
	"errors"
	"sync"
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

// contact knows how the attempts to hold the host go. It tells the listener when the first one is
// over and when the host is not reached.
type contact struct {
	listener Listener
	silent   *time.Timer // ends the wait for the next answer of the first attempt; made by Run
	told     atomic.Bool // HostTried was called
	reached  atomic.Bool // a session has answered Pending or sent an event

	mu   sync.Mutex // guards all below
	err  error      // of the last attempt; nil: it went well
	lost error      // why the last session ended, or did not begin
}

// watch tells the listener of a host that is silent or not reached, until ctx ends.
func (c *contact) watch(ctx context.Context) {
	defer c.silent.Stop()
	unreached := time.NewTimer(reachTimeout)
	defer unreached.Stop()
	for {
		select {
		case <-c.silent.C:
			c.record(func() {
				if c.err == nil {
					c.err = errors.New("the host does not answer")
				}
			})
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

// set records how an attempt went.
func (c *contact) set(err error) { c.record(func() { c.err = err }) }

// lose records why a session ended or did not begin.
func (c *contact) lose(err error) { c.record(func() { c.err, c.lost = err, err }) }

// record records the result of an attempt, which ends the first one.
func (c *contact) record(result func()) {
	c.mu.Lock()
	result()
	c.mu.Unlock()
	c.silent.Stop()
	if c.told.CompareAndSwap(false, true) {
		c.listener.HostTried()
	}
}

// shown returns the error for the status. If the lock is in doubt, it is at least that of the
// session that was lost.
func (c *contact) shown(inDoubt bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && inDoubt {
		return c.lost
	}
	return c.err
}
