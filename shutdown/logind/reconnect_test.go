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
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// reconnects is how often a test loses the session and connects again.
const reconnects = 1000

// A thousand sessions with a lock each leave no descriptor and no goroutine.
func TestReconnectsLeakNothing(t *testing.T) {
	h := newHost(t)
	source := h.source(t)
	reconnect := func() {
		session, err := source.Connect(t.Context())
		require.NoError(t, err)
		lock, err := session.Inhibit(t.Context())
		require.NoError(t, err)
		require.NoError(t, session.Close())
		require.NoError(t, lock.Close())
	}
	reconnect() // what is made once is made
	settled := func() bool { return len(h.login1.Held()) == 0 }
	require.Eventually(t, settled, testTimeout, time.Millisecond)
	descriptors, goroutines := openDescriptors(t), runtime.NumGoroutine()
	for range reconnects {
		reconnect()
	}
	require.Eventually(t, settled, testTimeout, time.Millisecond)
	requireNoGrowth(t, descriptors, goroutines)
}

// Repeated calls of Available leave no descriptor and no goroutine.
func TestAvailableLeaksNothing(t *testing.T) {
	h := newHost(t)
	source := h.source(t)
	require.NoError(t, source.Available(t.Context()))
	descriptors, goroutines := openDescriptors(t), runtime.NumGoroutine()
	for range 50 {
		require.NoError(t, source.Available(t.Context()))
	}
	requireNoGrowth(t, descriptors, goroutines)
}

// A manager without a bus or logind calls Connect every second. These calls leave no descriptor and no
// goroutine.
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

// The bus hangs (it is stopped by SIGSTOP). Every call must return when its context ends.
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

// When the bus ends, the session ends. The lock stays held, so that a shutdown is still delayed.
func TestALostBusEndsTheSession(t *testing.T) {
	h := newHost(t)
	session := h.connect(t)
	_, lock := h.inhibit(t, session)
	h.bus.Stop()
	awaitEnd(t, session)
	_, err := session.Pending(t.Context())
	require.Error(t, err)
	requireHeld(t, lock)
}

// When logind ends, the session ends, because a restarted logind may know nothing of it. The lock stays
// held.
func TestANewOwnerEndsTheSession(t *testing.T) {
	h := newHost(t)
	session := h.connect(t)
	_, lock := h.inhibit(t, session)
	h.login1.Close()
	awaitEnd(t, session)
	requireHeld(t, lock)

	h.login1 = logindfake.StartLogin1(t, h.bus.Address)
	h.connect(t)
}

// The bus is restarted. The manager connects again, takes a new lock, and only then releases the old one.
func TestTheManagerReconnects(t *testing.T) {
	h := newHost(t)
	manager := runManagerOn(t, h.source(t), shutdown.Options{Config: buckets, Killer: &shutdowntest.Killer{}})
	awaitOnlyLock(t, h, manager)
	first := h.login1.Held()[0]

	h.bus.Stop()
	require.Eventually(t, func() bool { return manager.Inhibitor().Err != nil }, testTimeout, time.Millisecond)
	h.bus.Start()
	h.login1 = logindfake.StartLogin1(t, h.bus.Address)
	awaitOnlyLock(t, h, manager)
	awaitReleased(t, first)
}

// The agent starts before the bus. It takes the lock as soon as the bus is there.
func TestTheManagerWaitsForTheBus(t *testing.T) {
	h := newHost(t)
	h.bus.Stop()
	manager := runManagerOn(t, h.source(t), shutdown.Options{Config: buckets, Killer: &shutdowntest.Killer{}})
	require.False(t, manager.Inhibitor().Held)
	h.bus.Start()
	h.login1 = logindfake.StartLogin1(t, h.bus.Address)
	awaitOnlyLock(t, h, manager)
}

// The bus is restarted during a drain. The drain goes on, and the manager must not take the same shutdown,
// which the new session reports as pending, for another one.
func TestTheManagerDrainsWithoutTheBus(t *testing.T) {
	h := newHost(t)
	h.login1.SetLimit(30 * time.Second)
	killer := &shutdowntest.Killer{Default: shutdowntest.Behaviour{Takes: time.Second}}
	manager := runManagerOn(t, h.source(t), shutdown.Options{Config: buckets, Killer: killer})
	awaitOnlyLock(t, h, manager)
	lock := h.login1.Held()[0]
	h.login1.Prepare(true)
	require.Eventually(t, func() bool { return len(killer.Kills()) == 1 }, testTimeout, time.Millisecond)

	h.bus.Stop()
	h.bus.Start()
	h.login1 = logindfake.StartLogin1(t, h.bus.Address)
	h.login1.SetLimit(30 * time.Second)
	h.login1.SetPreparing(true) // the bus was restarted, logind was not: it knows
	awaitReleased(t, lock)
	require.Len(t, killer.Kills(), 2, "both buckets were drained, each once")
	require.Error(t, manager.ShutdownStatus())
}

// logind no longer lists the lock. The manager takes a new one and releases the old one.
func TestTheManagerReplacesALostLock(t *testing.T) {
	h := newHost(t)
	h.times.Verify = 5 * time.Millisecond
	manager := runManagerOn(t, h.source(t), shutdown.Options{Config: buckets, Killer: &shutdowntest.Killer{}})
	awaitOnlyLock(t, h, manager)
	first := h.login1.Held()[0]
	h.login1.Hide()
	awaitReleased(t, first)
	awaitOnlyLock(t, h, manager)
}

// awaitOnlyLock waits until the manager holds the only lock.
func awaitOnlyLock(t *testing.T, h *host, manager *shutdown.Manager) {
	t.Helper()
	require.Eventually(t, func() bool {
		status := manager.Inhibitor()
		return status.Held && status.Err == nil && len(h.login1.Held()) == 1
	}, testTimeout, time.Millisecond)
}
