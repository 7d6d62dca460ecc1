//go:build linux

package logind_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/logindfake"
	"github.com/kubegrace/kubegrace/internal/logindhost"
	"github.com/kubegrace/kubegrace/shutdown/logind"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// ours is the path of kubegrace's drop-in below the root of the test's host.
const ours = etc + "/zz-kubegrace.conf"

// requireGrantedLess requests a minute, and requires that only limit is granted, and that the error names setBy as the file that sets
// the limit; "": none.
func requireGrantedLess(t *testing.T, session source.Session, limit time.Duration, setBy string) {
	t.Helper()
	granted, err := session.RequestDelay(t.Context(), time.Minute)
	require.Equal(t, limit, granted)
	var capped *source.DelayCappedError
	require.ErrorAs(t, err, &capped)
	require.Equal(t, setBy, capped.SetBy)
}

// requireGranted requests a delay, and requires that exactly this delay is granted.
func requireGranted(t *testing.T, session source.Session, delay time.Duration) {
	t.Helper()
	granted, err := session.RequestDelay(t.Context(), delay)
	require.NoError(t, err)
	require.Equal(t, delay, granted)
}

// Somebody adds a file with 15 s that sorts before the drop-in. The drop-in still wins with its minute, so RequestDelay does
// not reload logind.
func TestALosingFileChangesNothing(t *testing.T) {
	h := newHost(t)
	systemd1 := h.startSystemdThatApplies(t, ours)
	session := h.connect(t)
	requireGranted(t, session, time.Minute)
	h.limitDelay(t, etc+"/50-site.conf", "15")
	requireGranted(t, session, time.Minute)
	require.Len(t, systemd1.Reloads(), 1, "the first request's")
}

// The drop-in sets a minute, but logind's limit is 15 s, as if logind had read its files while the drop-in was missing. RequestDelay
// reloads logind, which has a minute again.
func TestALimitBelowTheDropInsCausesAReload(t *testing.T) {
	h := newHost(t)
	systemd1 := h.startSystemdThatApplies(t, ours)
	session := h.connect(t)
	requireGranted(t, session, time.Minute)
	h.login1.SetLimit(15 * time.Second)
	requireGranted(t, session, time.Minute)
	require.Len(t, systemd1.Reloads(), 2, "one for each request")
}

// Somebody adds a file that sorts after the drop-in, and reloads logind, so that its limit is 15 s. The error names the file.
// RequestDelay does not reload logind, neither then nor when the file is removed and logind has its minute again.
func TestAWinningFileIsNamed(t *testing.T) {
	const site = etc + "/zzz-site.conf"
	h := newHost(t)
	systemd1 := h.startSystemdThatApplies(t, ours)
	session := h.connect(t)
	requireGranted(t, session, time.Minute)
	h.limitDelay(t, site, "15")
	h.login1.SetLimit(15 * time.Second)
	for range 3 {
		requireGrantedLess(t, session, 15*time.Second, "/"+site)
	}

	require.NoError(t, os.Remove(filepath.Join(h.root, site)))
	h.login1.SetLimit(time.Minute)
	requireGranted(t, session, time.Minute)
	require.Len(t, systemd1.Reloads(), 1, "the first request's")
}

// logCount counts what is logged at the default verbosity.
type logCount struct{ infos, errors atomic.Int64 }

// The methods of klog.LogSink count the lines.
func (*logCount) Init(klog.RuntimeInfo)            {}
func (*logCount) Enabled(level int) bool           { return level == 0 }
func (c *logCount) Info(int, string, ...any)       { c.infos.Add(1) }
func (c *logCount) Error(error, string, ...any)    { c.errors.Add(1) }
func (c *logCount) WithValues(...any) klog.LogSink { return c }
func (c *logCount) WithName(string) klog.LogSink   { return c }

// connectCounting returns a session that is closed when the test ends, and the number of lines that it logs.
func (h *host) connectCounting(t *testing.T) (source.Session, *logCount) {
	t.Helper()
	log := &logCount{}
	session, err := h.source(t).Connect(klog.NewContext(t.Context(), klog.New(log)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, session.Close()) })
	return session, log
}

// The first request raises the limit with the drop-in. Somebody removes the drop-in, and logind has its 5 s again, so the next request
// raises the limit again. Each request is made three times, but each of the two changes is logged once.
func TestChangesOfTheLimitAreLoggedOnce(t *testing.T) {
	h := newHost(t)
	h.startSystemdThatApplies(t, ours)
	session, log := h.connectCounting(t)
	for range 3 {
		requireGranted(t, session, time.Minute)
	}
	require.EqualValues(t, 1, log.infos.Load())

	require.NoError(t, os.Remove(filepath.Join(h.root, ours)))
	h.login1.SetLimit(5 * time.Second)
	for range 3 {
		requireGranted(t, session, time.Minute)
	}
	require.EqualValues(t, 2, log.infos.Load())
	require.Zero(t, log.errors.Load())
}

// Somebody else's file has the name of the drop-in, so that the drop-in cannot be changed. The requests succeed, because the limit of
// 2 min is sufficient. The failure is logged once, and again only after a request without it.
func TestALastingFailureIsLoggedOnce(t *testing.T) {
	h := newHost(t)
	h.startSystemdThatApplies(t, ours)
	session, log := h.connectCounting(t)
	request := func() {
		_, err := session.RequestDelay(t.Context(), time.Minute)
		require.NoError(t, err)
	}
	h.limitDelay(t, ours, "120")
	h.login1.SetLimit(2 * time.Minute)
	for range 3 {
		request()
	}
	require.EqualValues(t, 1, log.errors.Load())

	require.NoError(t, os.Remove(filepath.Join(h.root, ours)))
	request()
	h.writeFile(t, ours, "[Login]\n")
	request()
	require.EqualValues(t, 2, log.errors.Load())
}

// RequestDelay raises logind's limit from 15 s to a minute, and logind announces a shutdown just before it applies the new
// limit. Its timer has the old limit, so the deadline must be 15 s ahead and not a minute.
func TestADeadlineUsesTheLimitBeforeAChange(t *testing.T) {
	h := newHost(t)
	h.times.Reload = testTimeout // RequestDelay waits for the new limit, even on a slow machine
	session := h.connect(t)
	h.login1.SetLimit(15 * time.Second)
	announced := make(chan time.Time, 1)
	announceThenReload := func() { // called when RequestDelay has systemd reload logind
		announced <- time.Now()
		h.announceShutdown()
		h.login1.SetLimit(time.Minute)
	}
	logindfake.StartSystemd1(t, h.bus.Address, announceThenReload)
	events := make(chan source.Event, 1)
	go func() { events <- <-session.Events() }()
	_, err := session.RequestDelay(t.Context(), time.Minute)
	require.NoError(t, err)
	event := <-events
	require.WithinDuration(t, (<-announced).Add(15*time.Second), event.Deadline, 10*time.Second, "15 s ahead, and not a minute")
}

// Somebody lowers and raises the limit of a real logind while the lock is held. Each request must return
// the limit that logind has, and the deadline of a shutdown must be that of logind. host.Configure writes a file, reloads
// logind, and returns when logind has the limit in its last argument.
func testRealLimitChanges(t *testing.T, host *logindhost.Host) {
	const (
		file = "/etc/systemd/logind.conf.d/zz-kubegrace.conf"
		site = "/etc/systemd/logind.conf.d/zzz-site.conf"
	)
	source, err := logind.New(logind.Options{NoFDStore: true}.With(logind.Times{Reload: testTimeout}))
	require.NoError(t, err)
	session := connect(t, source)
	requireGranted(t, session, time.Minute)
	takeLock(t, session)

	// The drop-in is removed, and another file sets 15 s. The drop-in is written again, and wins: its name sorts later.
	require.NoError(t, os.Remove(file))
	host.Configure("/etc/systemd/logind.conf.d/50-site.conf", "[Login]\nInhibitDelayMaxSec=15\n", 15*time.Second)
	requireGranted(t, session, time.Minute)
	require.FileExists(t, file)

	// A file whose name sorts after the drop-in wins with 15 s. A shutdown has this limit too.
	host.Configure(site, "[Login]\nInhibitDelayMaxSec=15\n", 15*time.Second)
	for range 2 {
		requireGrantedLess(t, session, 15*time.Second, site)
	}
	before := time.Now()
	host.PowerOff()
	event := nextEvent(t, session)
	require.WithinDuration(t, before.Add(15*time.Second), event.Deadline, 5*time.Second)
	host.Kill() // and with it the shutdown
	awaitEnd(t, session)
	host.Start()

	// The other file sets nothing any more. A request while logind hangs fails, and the next one succeeds.
	session = connect(t, source)
	host.Configure(site, "", time.Minute)
	requireGranted(t, session, time.Minute)
	resume := host.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = session.RequestDelay(ctx, time.Minute)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	resume()
	requireGranted(t, session, time.Minute)
	require.Len(t, host.Inhibitors(), 1)
}
