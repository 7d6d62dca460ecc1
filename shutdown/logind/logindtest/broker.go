//go:build linux

package logindtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/kubegrace/kubegrace/internal/logindfake"
)

// Broker is a small D-Bus broker with a scripted logind and systemd. It needs no dbus-daemon and no
// privileges. Unlike a daemon it has no policy: every connection may own every name.
type Broker struct {
	// Address is the D-Bus address of the bus, for logind.Options.Address.
	Address string

	fake *logindfake.Broker
}

// Lock is an inhibitor lock that logind has granted.
type Lock struct {
	// Who is the argument of Inhibit that names the holder.
	Who string
	// Released is closed when the last copy of the lock is closed.
	Released <-chan struct{}
}

// StartBroker is [NewBroker] for a test: an error fails the test, and the broker is closed when the
// test ends.
func StartBroker(t testing.TB) *Broker {
	t.Helper()
	fake := logindfake.StartBroker(t)
	return &Broker{Address: fake.Address, fake: fake}
}

// NewBroker starts a broker in a new temporary folder. Its logind has a limit of 5 s. Its systemd fails to
// reload logind until [Broker.OnHangUp] is called. The caller closes it.
func NewBroker() (*Broker, error) {
	fake, err := logindfake.NewBroker()
	if err != nil {
		return nil, fmt.Errorf("failed to start a broker: %w", err)
	}
	return &Broker{Address: fake.Address, fake: fake}, nil
}

// Close ends all connections and waits for the broker's goroutines. Locks stay held. Further calls do
// nothing, so that a test may close a broker of [StartBroker] early.
func (b *Broker) Close() error { return b.fake.Close() }

// SetLimit sets the longest delay that logind grants (InhibitDelayMaxSec).
func (b *Broker) SetLimit(limit time.Duration) { b.fake.Login1.SetLimit(limit) }

// Prepare announces a shutdown, or its cancellation if active is false (PrepareForShutdown).
func (b *Broker) Prepare(active bool) { b.fake.Login1.Prepare(active) }

// Held returns the locks that are not released.
func (b *Broker) Held() (held []Lock) {
	for _, lock := range b.fake.Login1.Held() {
		held = append(held, Lock{lock.Who, lock.Released})
	}
	return held
}

// OnHangUp sets the function that is called when logind is told to read its files again (SIGHUP). Nil: the
// reload fails. The scripted logind reads no files.
func (b *Broker) OnHangUp(hangUp func()) { b.fake.Systemd1.OnHangUp(hangUp) }
