//go:build linux

package logind_test

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/logindfake"
)

// reconnects is how often a test loses the session and connects again.
const reconnects = 200

// A source makes 200 sessions, each with a lock, and Available is called 200 times. Afterwards there are no more open
// descriptors and no more goroutines than before.
func TestReconnectsLeakNothing(t *testing.T) {
	h := newHost(t)
	source := h.source(t)
	reconnect := func() {
		require.NoError(t, source.Available(t.Context()))
		session, err := source.Connect(t.Context())
		require.NoError(t, err)
		lock, err := session.Inhibit(t.Context())
		require.NoError(t, err)
		require.NoError(t, session.Close())
		require.NoError(t, lock.Close())
	}
	reconnect() // so that the counts include what is opened only once
	noLockIsHeld := func() bool { return len(h.login1.Held()) == 0 }
	require.Eventually(t, noLockIsHeld, testTimeout, time.Millisecond)
	descriptors, goroutines := openDescriptors(t), runtime.NumGoroutine()
	for range reconnects {
		reconnect()
	}
	require.Eventually(t, noLockIsHeld, testTimeout, time.Millisecond)
	requireNoGrowth(t, descriptors, goroutines)
}

// A manager without a bus or logind calls Connect every second, and each call fails. After 50 calls there are no more open
// descriptors and no more goroutines than before.
func TestAFailedConnectLeaksNothing(t *testing.T) {
	for name, stop := range map[string]func(*host){
		"no bus":    func(h *host) { h.bus.Stop() },
		"no logind": func(h *host) { h.login1.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			source := h.source(t)
			stop(h)
			_, err := source.Connect(t.Context())
			require.Error(t, err)
			require.Error(t, source.Available(t.Context()))
			descriptors, goroutines := openDescriptors(t), runtime.NumGoroutine()
			for range 50 {
				_, err := source.Connect(t.Context())
				require.Error(t, err)
			}
			requireNoGrowth(t, descriptors, goroutines)
		})
	}
}

// The bus hangs (Pause suspends it with SIGSTOP). Every call must return when its context ends, after 10 ms. When the bus is
// killed, the session ends.
func TestConnectTimesOut(t *testing.T) {
	h := newHost(t)
	source := h.source(t)
	session := connect(t, source)
	h.bus.Pause()
	for name, call := range map[string]func(context.Context) error{
		"Available":    source.Available,
		"Connect":      func(ctx context.Context) error { _, err := source.Connect(ctx); return err },
		"Pending":      func(ctx context.Context) error { _, err := session.Pending(ctx); return err },
		"RequestDelay": func(ctx context.Context) error { _, err := session.RequestDelay(ctx, time.Minute); return err },
		"Inhibit":      func(ctx context.Context) error { _, err := session.Inhibit(ctx); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		require.ErrorIs(t, call(ctx), context.DeadlineExceeded, name)
		cancel()
	}
	h.bus.Stop()
	awaitEnd(t, session)
}

// requireNoGrowth waits until there are no more descriptors and goroutines than before: godbus ends its
// goroutines shortly after the connection.
func requireNoGrowth(t *testing.T, descriptors, goroutines int) {
	t.Helper()
	for end := time.Now().Add(testTimeout); openDescriptors(t) > descriptors || runtime.NumGoroutine() > goroutines; {
		require.True(t, time.Now().Before(end), "%d descriptors, of %d, and %d goroutines, of %d, are left",
			openDescriptors(t), descriptors, runtime.NumGoroutine(), goroutines)
		<-time.After(time.Millisecond)
	}
}

// openDescriptors returns the number of this process's open descriptors.
func openDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

// The bus ends, and with it the session. The lock stays held, so that a shutdown is still delayed.
func TestALostBusEndsTheSession(t *testing.T) {
	h, session := newSession(t)
	_, lock := h.inhibit(t, session)
	h.bus.Stop()
	awaitEnd(t, session)
	_, err := session.Pending(t.Context())
	require.Error(t, err, "a session that has ended")
	requireHeld(t, lock)
}

// logind gives up its bus name, as when it is stopped. The session ends too, because the next logind may know nothing of it.
// The lock stays held. A new session can be connected to the next logind.
func TestANewOwnerEndsTheSession(t *testing.T) {
	h, session := newSession(t)
	_, lock := h.inhibit(t, session)
	h.login1.Close()
	awaitEnd(t, session)
	requireHeld(t, lock)

	h.login1 = logindfake.StartLogin1(t, h.bus.Address)
	h.connect(t)
}
