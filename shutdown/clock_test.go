//go:build go1.25

package shutdown_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// steppedClock is a clock that moves only when step is called.
type steppedClock struct {
	mu    sync.Mutex // guards all below
	now   time.Time
	waits map[chan time.Time]time.Time // when to send on each channel that After returned
}

// Now returns the time to which the clock was stepped.
func (c *steppedClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// After returns a channel that receives the time when step has moved the clock by d.
func (c *steppedClock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	passed := make(chan time.Time, 1)
	c.waits[passed] = c.now.Add(d)
	return passed
}

// step moves the clock, then waits until all goroutines are blocked.
func (c *steppedClock) step(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	for passed, at := range c.waits {
		if !at.After(c.now) {
			passed <- c.now
			delete(c.waits, passed)
		}
	}
	c.mu.Unlock()
	synctest.Wait()
}

// Options.Clock, not the system clock, decides when the next bucket begins: the system clock stands still in this test. The
// first bucket has 20 s and the second 10 s. Options.Clock is stepped to 19 s, which changes nothing, and then to 21 s:
// etcd has until 30 s, and gets 30 s - 21 s = 9 s.
func TestBucketsFollowTheClockOfTheOptions(t *testing.T) {
	pods := []*v1.Pod{shutdowntest.Pod("web", regularPriority, 60), shutdowntest.Pod("etcd", criticalPriority, 60)}
	inBubble(t, pods, func(t *testing.T, n *node) {
		clock := &steppedClock{now: time.Now(), waits: map[chan time.Time]time.Time{}}
		n.opts.Clock = clock
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.run()
		began := time.Now()
		n.announce()
		require.Equal(t, map[string]int64{"web": 20}, n.grantedSeconds())
		clock.step(19 * time.Second)
		require.Equal(t, map[string]int64{"web": 20}, n.grantedSeconds())
		clock.step(2 * time.Second)
		require.Equal(t, map[string]int64{"web": 20, "etcd": 9}, n.grantedSeconds())
		require.Zero(t, time.Since(began))
	})
}
