//go:build linux

package logind_test

import (
	"context"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kubegrace/kubegrace/internal/logindfake"
	"github.com/kubegrace/kubegrace/internal/logindhost"
	"github.com/kubegrace/kubegrace/internal/need"
	"github.com/kubegrace/kubegrace/shutdown/logind"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// TestRealLogind tests with systemd's logind, in a process with its own namespaces. Each subtest has its own host.
func TestRealLogind(t *testing.T) {
	if !logindhost.InNamespace(t) {
		return // the test has run in the other process
	}
	for name, test := range map[string]func(*testing.T, *logindhost.Host){
		"available":               testRealAvailable,
		"lock is listed":          testRealLockIsListed,
		"limit changes":           testRealLimitChanges,
		"limit extremes":          testRealLimitExtremes,
		"limit of two agents":     testRealLimitOfTwoAgents,
		"read-only etc":           testRealReadOnlyEtc,
		"read-only drop-in":       testRealReadOnlyDropIn,
		"delayed until released":  testRealDelayedUntilReleased,
		"cancelled":               testRealCancelled,
		"started in a shutdown":   testRealStartedInAShutdown,
		"agent killed, lock kept": testRealAgentKilledLockKept,
	} {
		t.Run(name, func(t *testing.T) { test(t, logindhost.StartHost(t)) })
	}
}

// realSource returns a source with the zero options, except that it does not use the FD store of the test's process.
func realSource(t *testing.T) *logind.Source {
	t.Helper()
	source, err := logind.New(logind.Options{NoFDStore: true})
	require.NoError(t, err)
	return source
}

// shortReloadSource returns a source that waits at most 300 ms for a reload of logind.
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

// requireNoPowerOff requires that logind does not power off within the period.
func requireNoPowerOff(t *testing.T, host *logindhost.Host, period time.Duration) {
	t.Helper()
	select {
	case unit := <-host.Systemd1.Started:
		require.Fail(t, "the host did not wait", unit)
	case <-time.After(period):
	}
}

// Available succeeds while logind is on the bus. It fails when logind was killed, and when the bus was stopped too.
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

// Another file limits the delay to 0: the drop-in has a later name and wins, so that 7 s are granted. Then the other file
// allows any delay (infinity): the drop-in is removed, and the granted delay is the longest duration.
func testRealLimitExtremes(t *testing.T, host *logindhost.Host) {
	session := connect(t, realSource(t))
	const file = "/etc/systemd/logind.conf.d/50.conf"
	host.Configure(file, "[Login]\nInhibitDelayMaxSec=0\n", 0)
	requireGranted(t, session, 7*time.Second)

	require.NoError(t, os.WriteFile(file, []byte("[Login]\nInhibitDelayMaxSec=infinity\n"), 0o600))
	granted, err := session.RequestDelay(t.Context(), 7*time.Second)
	require.NoError(t, err)
	require.Equal(t, time.Duration(math.MaxInt64), granted, "the drop-in is removed for a file with a higher limit")
}

// An agent that needs a shorter delay does not lower the limit of another agent, whose lock has the same reason. If only a
// program with another reason holds a lock, a request lowers the limit, and one that logind's default of 5 s covers removes
// the drop-in.
func testRealLimitOfTwoAgents(t *testing.T, host *logindhost.Host) {
	session := connect(t, realSource(t))
	requireGranted(t, session, 42*time.Second)
	inhibit := func(why string) (end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		other := exec.CommandContext(ctx, need.Program(t, "systemd-inhibit", "systemd"), "--what=shutdown", "--mode=delay", "--who=another",
			"--why="+why, "sleep", "1000")
		require.NoError(t, other.Start())
		require.Eventually(t, func() bool { return len(host.Inhibitors()) == 1 }, testTimeout, time.Millisecond)
		return func() {
			cancel()
			require.Error(t, other.Wait(), "it was killed")
			require.Eventually(t, func() bool { return len(host.Inhibitors()) == 0 }, testTimeout, time.Millisecond)
		}
	}
	endAgent := inhibit("Pods need time to end before the node shuts down")
	for _, requested := range []time.Duration{0, 5 * time.Second, 7 * time.Second} {
		granted, err := session.RequestDelay(t.Context(), requested)
		require.NoError(t, err)
		require.Equal(t, 42*time.Second, granted)
	}
	requireGranted(t, session, 50*time.Second) // a higher limit harms nobody
	endAgent()
	endProgram := inhibit("A backup is running")
	defer endProgram()
	requireGranted(t, session, 7*time.Second)
	requireGranted(t, session, 5*time.Second)
	require.NoFileExists(t, "/etc/systemd/logind.conf.d/zz-kubegrace.conf", "logind's default covers it")
}

// If /etc is read-only, the drop-in goes to /run, and logind reads it there.
func testRealReadOnlyEtc(t *testing.T, _ *logindhost.Host) {
	require.NoError(t, unix.Mount("", "/etc/systemd", "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	requireGranted(t, connect(t, realSource(t)), 42*time.Second)
	require.FileExists(t, "/run/systemd/logind.conf.d/zz-kubegrace.conf")
}

// /etc becomes read-only with a drop-in in it. A request for more is an error that says so. logind is not reloaded again and
// again, and nothing is written to /run, where logind would ignore a drop-in of the same name.
func testRealReadOnlyDropIn(t *testing.T, host *logindhost.Host) {
	session := connect(t, realSource(t))
	requireGranted(t, session, 30*time.Second)
	require.NoError(t, unix.Mount("", "/etc/systemd", "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	for range 2 {
		granted, err := session.RequestDelay(t.Context(), time.Minute)
		require.Equal(t, 30*time.Second, granted)
		require.ErrorIs(t, err, unix.EROFS)
	}
	require.Len(t, host.Systemd1.Reloads(), 1, "for the first request")
	require.NoFileExists(t, "/run/systemd/logind.conf.d/zz-kubegrace.conf")
}

// logind does not power off while the lock is held, but does when the lock is closed. The deadline of the event is 5 s
// ahead, which is logind's default.
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

// During a shutdown logind grants no lock. systemd refuses the power-off, which cancels the shutdown. A lock that is taken
// after the cancellation delays the next shutdown.
func testRealCancelled(t *testing.T, host *logindhost.Host) {
	session := connect(t, realSource(t))
	lock := takeLock(t, session)
	host.Systemd1.RefuseStart(&logindfake.Refusal{Name: "org.freedesktop.systemd1.TransactionIsDestructive", Text: "Transaction is destructive."})
	host.PowerOff()
	requireAnnounced(t, session)
	_, err := session.Inhibit(t.Context())
	var refused dbus.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "org.freedesktop.login1.OperationInProgress", refused.Name)
	require.NoError(t, lock.Close())
	awaitPowerOff(t, host)
	requireCancelled(t, session)
	pending, err := session.Pending(t.Context())
	require.NoError(t, err)
	require.Nil(t, pending)

	host.Systemd1.RefuseStart(nil)
	second := takeLock(t, session)
	host.PowerOff()
	requireAnnounced(t, session)
	requireNoPowerOff(t, host, 200*time.Millisecond)
	require.NoError(t, second.Close())
	awaitPowerOff(t, host)
}

// A session begins during a shutdown. Pending returns the shutdown, and its cancellation comes as an event.
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
	requireCancelled(t, late)
}

// The FD store keeps the lock of a killed agent, so that the host waits. The next agent adopts the lock. When that agent
// releases the lock, the host powers off.
func testRealAgentKilledLockKept(t *testing.T, host *logindhost.Host) {
	store := logindhost.StartFDStore(t, storeMax)
	first := startAgent(t, store)
	requireStored(t, store, "inhibitor")
	host.PowerOff()
	first.kill()
	requireNoPowerOff(t, host, 100*time.Millisecond)
	second := startAgent(t, store)
	require.Equal(t, "adopted=false pending=true inhibited=true fdnames=taken", second.found)
	requireNoPowerOff(t, host, 100*time.Millisecond)
	second.command("release")
	awaitPowerOff(t, host)
}
