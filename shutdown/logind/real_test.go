//go:build linux

package logind_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kubegrace/kubegrace/internal/logindfake"
	"github.com/kubegrace/kubegrace/internal/logindhost"
	"github.com/kubegrace/kubegrace/internal/need"
	"github.com/kubegrace/kubegrace/shutdown/logind"
)

// TestRealLogind tests with systemd's logind, in a process with its own namespaces. Each subtest has its own host.
func TestRealLogind(t *testing.T) {
	if !logindhost.InNamespace(t) {
		return // the test has run in the other process
	}
	for name, test := range map[string]func(*testing.T, *logindhost.Host){
		"available":                testRealAvailable,
		"lock is listed":           testRealLockIsListed,
		"limit raised":             testRealLimitRaised,
		"limit capped":             testRealLimitCapped,
		"limit changes":            testRealLimitChanges,
		"limit extremes":           testRealLimitExtremes,
		"limit of two agents":      testRealLimitOfTwoAgents,
		"read-only etc":            testRealReadOnlyEtc,
		"delayed until released":   testRealDelayedUntilReleased,
		"delay expired":            testRealDelayExpired,
		"cancelled":                testRealCancelled,
		"started in a shutdown":    testRealStartedInAShutdown,
		"restarted while idle":     testRealRestartedWhileIdle,
		"restarted while draining": testRealRestartedWhileDraining,
		"agent killed":             testRealAgentKilled,
		"agent killed, lock kept":  testRealAgentKilledLockKept,
	} {
		t.Run(name, func(t *testing.T) { test(t, logindhost.StartHost(t)) })
	}
}

// realSource has the zero options, but ignores the FD store of the test's process.
func realSource(t *testing.T) *logind.Source {
	t.Helper()
	source, err := logind.New(logind.Options{NoFDStore: true})
	require.NoError(t, err)
	return source
}

// shortReloadSource has a short reload timeout.
func shortReloadSource(t *testing.T) *logind.Source {
	t.Helper()
	source, err := logind.New(logind.Options{NoFDStore: true}.With(logind.Times{Reload: 300 * time.Millisecond}))
	require.NoError(t, err)
	return source
}

// takeLock takes a lock that is released at the end of the test.
func takeLock(t *testing.T, session source.Session) io.Closer {
	t.Helper()
	lock, err := session.Inhibit(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lock.Close()) })
	return lock
}

// awaitPowerOff waits until logind asks systemd for the power-off, which ends the delay.
func awaitPowerOff(t *testing.T, host *logindhost.Host) {
	t.Helper()
	select {
	case unit := <-host.Systemd1.Started:
		require.Equal(t, "poweroff.target", unit)
	case <-time.After(testTimeout):
		require.Fail(t, "the host does not power off")
	}
}

// requireNoPowerOff requires that logind does not power off for a while.
func requireNoPowerOff(t *testing.T, host *logindhost.Host, while time.Duration) {
	t.Helper()
	select {
	case unit := <-host.Systemd1.Started:
		require.Fail(t, "the host did not wait", unit)
	case <-time.After(while):
	}
}

// Available succeeds only if the bus works and logind is on it.
func testRealAvailable(t *testing.T, host *logindhost.Host) {
	source := realSource(t)
	require.NoError(t, source.Available(t.Context()))
	host.Kill()
	require.Error(t, source.Available(t.Context()), "a bus without logind")
	host.Bus.Stop()
	require.Error(t, source.Available(t.Context()), "no bus")
}

// logind lists the lock with our texts, as systemd-inhibit --list shows it, until it is closed.
func testRealLockIsListed(t *testing.T, host *logindhost.Host) {
	lock := takeLock(t, connect(t, realSource(t)))
	require.Equal(t, []logindhost.Inhibitor{{
		What: "shutdown", Who: filepath.Base(os.Args[0]), Why: "Pods need time to end before the node shuts down", Mode: "delay", UID: uint32(os.Getuid()), PID: uint32(os.Getpid()),
	}}, host.Inhibitors())
	require.NoError(t, lock.Close())
	require.Eventually(t, func() bool { return len(host.Inhibitors()) == 0 }, testTimeout, time.Millisecond)
}

// The drop-in raises the limit of a real logind to 42 s. A request that logind's default of 5 s covers
// removes it.
func testRealLimitRaised(t *testing.T, _ *logindhost.Host) {
	session := connect(t, realSource(t))
	granted, err := session.RequestDelay(t.Context(), 42*time.Second)
	require.NoError(t, err)
	require.Equal(t, 42*time.Second, granted)
	require.FileExists(t, "/etc/systemd/logind.conf.d/zz-kubegrace.conf")

	granted, err = session.RequestDelay(t.Context(), 5*time.Second)
	require.NoError(t, err)
	require.Equal(t, 5*time.Second, granted)
	require.NoFileExists(t, "/etc/systemd/logind.conf.d/zz-kubegrace.conf", "the drop-in is not needed any more")
}

// A file in /run whose name sorts after the drop-in's limits the delay to 30 s, and the error names it.
func testRealLimitCapped(t *testing.T, host *logindhost.Host) {
	const winner = "/run/systemd/logind.conf.d/zzz-vendor.conf"
	host.Configure(winner, "[Login]\nInhibitDelayMaxSec=30\n", 30*time.Second)
	granted, err := connect(t, shortReloadSource(t)).RequestDelay(t.Context(), time.Minute)
	require.Equal(t, 30*time.Second, granted)
	var capped *source.DelayCappedError
	ok := errors.As(err, &capped)
	require.True(t, ok, "%v", err)
	require.Equal(t, winner, capped.SetBy)
}

// The drop-in wins over a file with 0, which means no delay. It is removed for a file with infinity, and
// the delay is the longest duration.
func testRealLimitExtremes(t *testing.T, host *logindhost.Host) {
	session := connect(t, realSource(t))
	const file = "/etc/systemd/logind.conf.d/50.conf"
	host.Configure(file, "[Login]\nInhibitDelayMaxSec=0\n", 0)
	granted, err := session.RequestDelay(t.Context(), 7*time.Second)
	require.NoError(t, err)
	require.Equal(t, 7*time.Second, granted, "the later name wins")

	require.NoError(t, os.WriteFile(file, []byte("[Login]\nInhibitDelayMaxSec=infinity\n"), 0o600))
	granted, err = session.RequestDelay(t.Context(), 7*time.Second)
	require.NoError(t, err)
	require.Equal(t, time.Duration(1<<63-1), granted, "the drop-in is removed for a file with a higher limit")
}

// An agent that needs a shorter delay does not lower the limit of another agent.
func testRealLimitOfTwoAgents(t *testing.T, host *logindhost.Host) {
	session := connect(t, realSource(t))
	granted, err := session.RequestDelay(t.Context(), 42*time.Second)
	require.NoError(t, err)
	require.Equal(t, 42*time.Second, granted)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	other := exec.CommandContext(ctx, need.Program(t, "systemd-inhibit", "systemd"), "--what=shutdown", "--mode=delay", "--who=another",
		"--why=Pods need time to end before the node shuts down", "sleep", "1000")
	require.NoError(t, other.Start())
	require.Eventually(t, func() bool { return len(host.Inhibitors()) == 1 }, testTimeout, time.Millisecond)
	for _, wish := range []time.Duration{0, 5 * time.Second, 7 * time.Second} {
		granted, err = session.RequestDelay(t.Context(), wish)
		require.NoError(t, err)
		require.Equal(t, 42*time.Second, granted)
	}
	granted, err = session.RequestDelay(t.Context(), 50*time.Second)
	require.NoError(t, err)
	require.Equal(t, 50*time.Second, granted, "a larger limit changes nothing")
	end()
	require.Error(t, other.Wait(), "it was killed")
	require.Eventually(t, func() bool { return len(host.Inhibitors()) == 0 }, testTimeout, time.Millisecond)
	granted, err = session.RequestDelay(t.Context(), 7*time.Second)
	require.NoError(t, err)
	require.Equal(t, 7*time.Second, granted)
}

// If /etc is read-only, the drop-in goes to /run, and logind reads it there.
func testRealReadOnlyEtc(t *testing.T, _ *logindhost.Host) {
	require.NoError(t, unix.Mount("", "/etc/systemd", "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	granted, err := connect(t, realSource(t)).RequestDelay(t.Context(), 42*time.Second)
	require.NoError(t, err)
	require.Equal(t, 42*time.Second, granted)
	require.FileExists(t, "/run/systemd/logind.conf.d/zz-kubegrace.conf")
}

// logind does not power off while the lock is held, and does when it is closed. The deadline has logind's
// default of 5 s.
func testRealDelayedUntilReleased(t *testing.T, host *logindhost.Host) {
	session := connect(t, realSource(t))
	lock := takeLock(t, session)
	host.PowerOff()
	event := nextEvent(t, session)
	require.False(t, event.Cancelled)
	require.WithinDuration(t, time.Now().Add(5*time.Second), event.Deadline, 3*time.Second)
	pending, err := session.Pending(t.Context())
	require.NoError(t, err)
	require.NotNil(t, pending)

	requireNoPowerOff(t, host, 300*time.Millisecond)
	require.NoError(t, lock.Close())
	awaitPowerOff(t, host)
}

// After its limit of 1 s logind powers off, although the lock is still held.
func testRealDelayExpired(t *testing.T, host *logindhost.Host) {
	host.Configure("/etc/systemd/logind.conf.d/1s.conf", "[Login]\nInhibitDelayMaxSec=1\n", time.Second)
	session := connect(t, realSource(t))
	takeLock(t, session)
	before := time.Now()
	host.PowerOff()
	event := nextEvent(t, session)
	awaitPowerOff(t, host)
	require.GreaterOrEqual(t, time.Since(before), time.Second)
	require.WithinDuration(t, before.Add(time.Second), event.Deadline, 3*time.Second)
	require.Len(t, host.Inhibitors(), 1, "logind powers off although the lock is held")
}

// systemd refuses the power-off, which cancels the shutdown. During it, logind grants no lock; afterwards
// a new lock delays the next shutdown.
func testRealCancelled(t *testing.T, host *logindhost.Host) {
	session := connect(t, realSource(t))
	lock := takeLock(t, session)
	host.Systemd1.BreakStart(&logindfake.Refusal{Name: "org.freedesktop.systemd1.TransactionIsDestructive", Text: "Transaction is destructive."})
	host.PowerOff()
	require.False(t, nextEvent(t, session).Cancelled)
	_, err := session.Inhibit(t.Context())
	var refused dbus.Error
	ok := errors.As(err, &refused)
	require.True(t, ok, "%v", err)
	require.Equal(t, "org.freedesktop.login1.OperationInProgress", refused.Name)
	require.NoError(t, lock.Close())
	awaitPowerOff(t, host)
	require.True(t, nextEvent(t, session).Cancelled)
	pending, err := session.Pending(t.Context())
	require.NoError(t, err)
	require.Nil(t, pending)

	host.Systemd1.BreakStart(nil)
	again := takeLock(t, session)
	host.PowerOff()
	require.False(t, nextEvent(t, session).Cancelled)
	requireNoPowerOff(t, host, 200*time.Millisecond)
	require.NoError(t, again.Close())
	awaitPowerOff(t, host)
}

// A session that begins during a shutdown gets it from Pending, and its cancellation as an event.
func testRealStartedInAShutdown(t *testing.T, host *logindhost.Host) {
	lock := takeLock(t, connect(t, realSource(t)))
	host.PowerOff()
	late := connect(t, realSource(t))
	pending, err := late.Pending(t.Context())
	require.NoError(t, err)
	require.NotNil(t, pending, "Pending reports a shutdown in progress")
	require.NoError(t, lock.Close())
	awaitPowerOff(t, host)
	host.Systemd1.EndJob("poweroff.target")
	require.True(t, nextEvent(t, late).Cancelled, "the host has not shut down")
}

// A killed logind ends the session, but the new logind still has the lock. The next session works.
func testRealRestartedWhileIdle(t *testing.T, host *logindhost.Host) {
	source := realSource(t)
	session := connect(t, source)
	takeLock(t, session)
	host.Kill()
	awaitEnd(t, session)
	host.Start()
	require.Len(t, host.Inhibitors(), 1, "the lock outlives logind")

	session = connect(t, source)
	takeLock(t, session)
	host.PowerOff()
	require.False(t, nextEvent(t, session).Cancelled)
}

// A killed logind forgets the shutdown: Pending says so, and the host does not power off when the lock is
// closed.
func testRealRestartedWhileDraining(t *testing.T, host *logindhost.Host) {
	source := realSource(t)
	session := connect(t, source)
	lock := takeLock(t, session)
	host.PowerOff()
	require.False(t, nextEvent(t, session).Cancelled)
	host.Kill()
	awaitEnd(t, session)
	host.Start()
	session = connect(t, source)
	pending, err := session.Pending(t.Context())
	require.NoError(t, err)
	require.Nil(t, pending, "a logind that was killed forgets the shutdown")
	require.NoError(t, lock.Close())
	requireNoPowerOff(t, host, 100*time.Millisecond)
}

// The agent's unit has no FD store. When the agent is killed, its lock is gone and the host powers off at
// once.
func testRealAgentKilled(t *testing.T, host *logindhost.Host) {
	a := startAgent(t, logindhost.StartFDStore(t, 0), nil)
	host.PowerOff()
	requireNoPowerOff(t, host, 100*time.Millisecond)
	a.kill()
	awaitPowerOff(t, host) // at once: a dead agent holds nothing
}

// The FD store keeps the lock of a killed agent, so that the host waits. The next agent adopts the lock,
// and the host powers off when it releases it.
func testRealAgentKilledLockKept(t *testing.T, host *logindhost.Host) {
	store := logindhost.StartFDStore(t, 4)
	first := startAgent(t, store, nil)
	requireStored(t, store, "inhibitor")
	host.PowerOff()
	first.kill()
	requireNoPowerOff(t, host, 100*time.Millisecond)
	second := startAgent(t, store, nil)
	require.Equal(t, "pending=true locked=true names=taken", second.found)
	requireNoPowerOff(t, host, 100*time.Millisecond)
	second.command("release")
	awaitPowerOff(t, host)
}
