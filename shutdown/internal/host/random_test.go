//go:build go1.25

package host_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/need"
	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// A player does 5 to 29 random things, such as beginning a shutdown, losing the session or releasing the lock. After each of
// them player.check compares the lock with a model: at most one lock is held, none after the release, and none is lost before
// the release. A Hold of an earlier shutdown has no effect, and each lock is closed once. -run TestRandomSequences/17 repeats
// one sequence.
func TestRandomSequences(t *testing.T) {
	seeds := 10_000
	if need.Shortened(t, "9,000 of 10,000 random sequences of the host") {
		seeds = 1000
	}
	for seed := range seeds {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlayer(t, uint64(seed)) //nolint:gosec // it is not negative
				for range 5 + p.rand.IntN(25) {
					p.step()
				}
				p.finish()
			})
		})
	}
}

// player does random things with a Host, and models which lock must be held.
type player struct {
	*rig

	rand     *rand.Rand
	previous []*host.Hold // Holds that have ended or were replaced
	steps    []string     // what was done, for messages

	current     *host.Hold // the Hold of the shutdown; nil: no shutdown
	released    bool       // the lock was released for the shutdown
	hadLock     bool       // a lock was held until the release
	releaseTime time.Time  // set by ReleaseAt; zero: not set
	heldBefore  int        // how many locks were held after the last step
}

// newPlayer starts a host with random circumstances: an adopter with or without a lock, a slow adoption, a pending
// shutdown.
func newPlayer(t *testing.T, seed uint64) *player {
	t.Helper()
	p := &player{rig: newRig(t), rand: rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // a test
	p.ignoresEvents = true                                             // the player suspends the lock
	if p.rand.IntN(2) == 0 {
		hasLock := p.rand.IntN(2) == 0
		p.useAdopter(hasLock)
	}
	if p.rand.IntN(4) == 0 {
		p.script.set(everyCallOf("adopt", fault{delay: p.randomDuration(12)}))
	}
	if p.rand.IntN(4) == 0 {
		p.script.pending = &source.Event{}
	}
	p.run()
	p.heldBefore = p.script.heldLocks()
	return p
}

// randomDuration returns a random duration of less than the given seconds.
func (p *player) randomDuration(seconds int) time.Duration {
	return time.Duration(p.rand.IntN(1000*seconds)) * time.Millisecond
}

// step does one random thing and checks the state.
func (p *player) step() {
	steps := []func() string{
		p.suspend, p.suspend, p.release, p.releaseAt, p.releaseAt, p.retake, p.endShutdown, p.endShutdown,
		p.lose, p.fault, p.refuseLocks, p.wait, p.wait, p.wait, p.usePreviousHold, p.usePreviousHold, p.concurrently,
	}
	p.steps = append(p.steps, steps[p.rand.IntN(len(steps))]())
	synctest.Wait()
	p.check()
}

// check compares the lock with the model.
func (p *player) check() {
	if isReleaseSet := !p.releaseTime.IsZero(); isReleaseSet && time.Until(p.releaseTime) <= 0 {
		p.modelRelease()
		p.releaseTime = time.Time{}
	}
	held, state := p.script.heldLocks(), p.host.Status().State
	require.LessOrEqual(p.t, held, 1, p.steps)
	require.Equal(p.t, held == 1, p.host.Status().Held(), p.steps)
	require.Equal(p.t, state == host.StateAdopted, p.host.Adopted(), p.steps)
	if p.released {
		require.Zero(p.t, held, p.steps)
	} else {
		require.GreaterOrEqual(p.t, held, p.heldBefore, "the lock was released: %v", p.steps)
	}
	if held == 0 { // a lock is wanted, unless a shutdown is in progress
		require.Equal(p.t, p.current == nil, state == host.StateTrying, p.steps)
	}
	if p.current != nil {
		require.Equal(p.t, held == 1 || p.hadLock, p.current.HostWaits(), p.steps)
	}
	p.heldBefore = held
}

// modelRelease records that the lock was released for the shutdown, and whether one was held until then (heldBefore is 0 or
// 1): only in that case check expects HostWaits to be true from now on. A second release changes nothing.
func (p *player) modelRelease() {
	if !p.released {
		p.released, p.hadLock = true, p.heldBefore == 1
	}
}

// The steps, each of which updates the model and returns its name for messages.

// suspend begins a shutdown. If one is in progress, it replaces the Hold of that shutdown.
func (p *player) suspend() string {
	if p.current != nil {
		p.previous = append(p.previous, p.current)
	}
	p.current, p.hadLock = p.host.BeginShutdown(), false
	return "suspend"
}

// release releases the lock for the shutdown.
func (p *player) release() string {
	if p.current != nil {
		require.NoError(p.t, releaseLock(p.t.Context(), p.current))
		p.modelRelease()
	}
	return "release"
}

// releaseAt sets a time for the release, up to 1 s in the past or 5 s in the future.
func (p *player) releaseAt() string {
	after := p.randomDuration(6) - time.Second + time.Microsecond // the microsecond: nothing else happens at the same time
	if p.current != nil {
		p.current.ReleaseAt(p.t.Context(), time.Now().Add(after))
		p.releaseTime = time.Now().Add(max(after, 0))
	}
	return fmt.Sprint("release after ", after)
}

// retake asks the host for another lock during the shutdown.
func (p *player) retake() string {
	if p.current != nil {
		p.current.Retake()
		if p.released {
			p.released, p.hadLock = false, false
		}
	}
	return "retake"
}

// endShutdown ends the shutdown, as after a cancellation.
func (p *player) endShutdown() string {
	if p.current != nil {
		p.current.End()
		p.previous = append(p.previous, p.current)
		p.current, p.released, p.hadLock, p.releaseTime = nil, false, false, time.Time{}
	}
	return "end"
}

// lose ends the session with the host.
func (p *player) lose() string {
	p.script.loseSession()
	return "lose"
}

// fault makes the calls of the source fail from now on, or succeed again.
func (p *player) fault() string {
	if p.rand.IntN(2) == 0 {
		p.script.set(func(s *script) { s.faults = nil })
		return "no fault"
	}
	random := rand.New(rand.NewPCG(p.rand.Uint64(), 2)) //nolint:gosec // a test
	span := p.randomDuration(12)
	p.script.set(func(s *script) {
		s.faults = func(method string, _ int) fault {
			if method == "release" {
				return fault{}
			}
			return []fault{{}, {}, {}, {err: errRefused}, {panics: true}, {hangs: true}, {delay: span}, {delay: span, endsWithContext: true}}[random.IntN(8)]
		}
	})
	return "fault"
}

// refuseLocks draws whether the host has a pending shutdown, because of which it refuses locks, and whether it grants the next
// one nevertheless.
func (p *player) refuseLocks() string {
	p.script.set(func(s *script) {
		s.grantsNextInShutdown = p.rand.IntN(2) == 0
		s.pending = nil
		if p.rand.IntN(2) == 0 {
			s.pending = &source.Event{}
		}
	})
	return "refuse"
}

// wait lets time pass, at most until the next release.
func (p *player) wait() string {
	passes := p.randomDuration(5)
	if left := time.Until(p.releaseTime); left > 0 && left < passes {
		p.advance(left - time.Nanosecond)
		p.check()
		passes = time.Nanosecond
	}
	p.advance(passes)
	return fmt.Sprint("pass ", passes)
}

// usePreviousHold calls a method of a replaced Hold, which must have no effect.
func (p *player) usePreviousHold() string {
	if len(p.previous) == 0 {
		return "no previous"
	}
	before, releases := p.host.Status(), p.script.callCount("release")
	hold, method := p.previous[p.rand.IntN(len(p.previous))], p.rand.IntN(5)
	p.use(hold, method)
	synctest.Wait()
	require.Equal(p.t, before, p.host.Status(), p.steps)
	require.Equal(p.t, releases, p.script.callCount("release"), p.steps)
	return "previous"
}

// use calls one of the methods of a Hold.
func (p *player) use(hold *host.Hold, method int) {
	switch method {
	case 0:
		_ = releaseLock(p.t.Context(), hold)
	case 1:
		hold.ReleaseAt(p.t.Context(), time.Now())
	case 2:
		hold.Retake()
	case 3:
		hold.End()
	default:
		hold.AwaitAttempt(p.t.Context(), time.Now().Add(time.Hour))
	}
}

// concurrently calls three methods of the Hold and loses the session at the same moment, and then ends the shutdown.
func (p *player) concurrently() string {
	p.suspend()
	var all sync.WaitGroup
	for range 3 {
		method := p.rand.IntN(4)
		all.Go(func() { p.use(p.current, method) })
	}
	all.Go(func() { p.script.loseSession() })
	all.Wait()
	synctest.Wait()
	require.LessOrEqual(p.t, p.script.heldLocks(), 1, p.steps)
	p.heldBefore = 0 // one of the calls may have released it
	p.endShutdown()
	return "concurrently"
}

// finish ends the sequence. In half of them it first ends the shutdown and all faults, and requires that a lock is then held.
// HostTried and HostUnreached were called at most once. At the end all locks and sessions must be closed.
func (p *player) finish() {
	if p.rand.IntN(2) == 0 {
		p.endShutdown()
		p.script.set(func(s *script) { s.faults, s.pending = nil, nil })
		p.advance(20 * time.Second)
		require.Equal(p.t, host.StateHeld, p.host.Status().State, p.steps)
		require.NoError(p.t, p.host.Status().Err, p.steps)
	}
	tried, unreached := 0, 0
	for _, heard := range p.listenerCalls() {
		var at, what string
		_, _ = fmt.Sscan(heard, &at, &what)
		if what == "HostTried" {
			tried++
		}
		if what == "HostUnreached" {
			unreached++
		}
	}
	require.LessOrEqual(p.t, tried, 1)
	require.LessOrEqual(p.t, unreached, 1)
	p.end()
}
