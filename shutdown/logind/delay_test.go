//go:build linux

package logind_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/logindfake"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// The folders of drop-ins, relative to the host's root.
const (
	etc = "etc/systemd/logind.conf.d"
	run = "run/systemd/logind.conf.d"
)

// startSystemdThatApplies starts a scripted systemd. When it reloads logind, logind applies the limit of the file, or 5 s if the
// file has none.
func (h *host) startSystemdThatApplies(t *testing.T, file string) *logindfake.Systemd1 {
	t.Helper()
	onReload := func() {
		limit := 5
		content, err := os.ReadFile(filepath.Join(h.root, file))
		if found := regexp.MustCompile(`InhibitDelayMaxSec=(\d+)`).FindSubmatch(content); err == nil && found != nil {
			limit, _ = strconv.Atoi(string(found[1]))
		}
		h.login1.SetLimit(time.Duration(limit) * time.Second)
	}
	return logindfake.StartSystemd1(t, h.bus.Address, onReload)
}

// startSystemdThatIgnoresReloads starts a scripted systemd. When it reloads logind, nothing changes.
func (h *host) startSystemdThatIgnoresReloads(t *testing.T) *logindfake.Systemd1 {
	t.Helper()
	return logindfake.StartSystemd1(t, h.bus.Address, func() {})
}

// limitDelay writes a file of the host that sets logind's limit, such as "15". Its path is relative to the host's root.
func (h *host) limitDelay(t *testing.T, file, limit string) {
	t.Helper()
	h.writeFile(t, file, "[Login]\nInhibitDelayMaxSec="+limit+"\n")
}

// writeFile writes a file of the host, whose path is relative to its root.
func (h *host) writeFile(t *testing.T, file, content string) {
	t.Helper()
	path := filepath.Join(h.root, file)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

// logind's limit is at least the requested delay. RequestDelay grants that limit, even if it is longer than requested, and
// writes no drop-in.
func TestASufficientLimitIsKept(t *testing.T) {
	for name, test := range map[string]struct{ limit, requested, granted time.Duration }{
		"the same": {limit: 5 * time.Second, requested: 5 * time.Second, granted: 5 * time.Second},
		"above":    {limit: time.Minute, requested: 5 * time.Second, granted: time.Minute},
		"infinite": {limit: logindfake.Unlimited, requested: math.MaxInt64, granted: math.MaxInt64},
		"both 0":   {limit: 0, requested: 0, granted: 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.login1.SetLimit(test.limit)
			granted, err := h.connect(t).RequestDelay(t.Context(), test.requested)
			require.NoError(t, err)
			require.Equal(t, test.granted, granted)
			require.NoDirExists(t, filepath.Join(h.root, "etc"), "nothing is written")
		})
	}
}

// logind's limit of 5 s is too low for the delays requested here. A drop-in, which every user may read, sets the requested
// delay, rounded up to seconds, and logind is reloaded once.
func TestALowLimitIsRaised(t *testing.T) {
	for requested, seconds := range map[time.Duration]int{
		42 * time.Second:             42,
		30*time.Second + 1:           31,
		5400 * time.Millisecond:      6,
		time.Hour - time.Millisecond: 3600,
	} {
		t.Run(requested.String(), func(t *testing.T) {
			h := newHost(t)
			systemd1 := h.startSystemdThatApplies(t, etc+"/zz-kubegrace.conf")
			granted, err := h.connect(t).RequestDelay(t.Context(), requested)
			require.NoError(t, err)
			require.Equal(t, time.Duration(seconds)*time.Second, granted)
			require.Equal(t, []string{"all"}, systemd1.Reloads(), "one SIGHUP, to all processes of logind's unit")

			path := filepath.Join(h.root, etc, "zz-kubegrace.conf")
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Regexp(t, fmt.Sprintf(`\A(#.*\n)*\[Login\]\nInhibitDelayMaxSec=%d\n\z`, seconds), string(content))
			requireMode(t, path, 0o644) // every user may read it
			requireMode(t, filepath.Dir(path), 0o755)
			entries, err := os.ReadDir(filepath.Dir(path))
			require.NoError(t, err)
			require.Len(t, entries, 1, "no temporary file is left")
		})
	}
}

// requireMode requires that a file has these permissions.
func requireMode(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, mode, info.Mode().Perm(), path)
}

// logind reads its files 100 ms after the SIGHUP. RequestDelay waits, and returns the new limit.
func TestRequestDelayWaitsForTheReload(t *testing.T) {
	h := newHost(t)
	h.times.Reload = testTimeout // how long RequestDelay waits at most
	onReload := func() { time.AfterFunc(100*time.Millisecond, func() { h.login1.SetLimit(time.Minute) }) }
	logindfake.StartSystemd1(t, h.bus.Address, onReload)
	requireGranted(t, h.connect(t), time.Minute)
}

// Three files set logind's limit: our zz-kubegrace.conf to a minute, a file whose name sorts before ours to 20 s, and one whose name
// sorts after ours to 30 s. The last one wins, so 30 s are granted, and the error names that file. The second request finds nothing to
// change, and does not reload logind again.
func TestAnotherFileCapsTheLimit(t *testing.T) {
	h := newHost(t)
	h.login1.SetLimit(30 * time.Second)
	const winner = "usr/lib/systemd/logind.conf.d/zz-unattended-upgrades.conf"
	h.limitDelay(t, winner, "30")
	h.limitDelay(t, etc+"/unattended-upgrades-logind-maxdelay.conf", "20")
	systemd1 := h.startSystemdThatIgnoresReloads(t)
	session := h.connect(t)
	for range 2 {
		granted, err := session.RequestDelay(t.Context(), time.Minute)
		require.Equal(t, 30*time.Second, granted)
		var capped *source.DelayCappedError
		require.ErrorAs(t, err, &capped)
		require.Equal(t, source.DelayCappedError{Requested: time.Minute, Granted: 30 * time.Second, Setting: "InhibitDelayMaxSec", SetBy: "/" + winner}, *capped)
		require.Len(t, systemd1.Reloads(), 1, "the first request's")
	}
	require.FileExists(t, filepath.Join(h.root, etc, "zz-kubegrace.conf"), "it counts when the winning file is removed")
}

// logind cannot be reloaded. The old limit of 5 s is granted, and the error names both the cap and the failed SIGHUP.
func TestAFailedReloadIsAnError(t *testing.T) {
	for name, start := range map[string]func(*testing.T, *host){
		"no systemd": func(*testing.T, *host) {},
		"systemd refuses": func(t *testing.T, h *host) {
			var refusesSIGHUP func()
			logindfake.StartSystemd1(t, h.bus.Address, refusesSIGHUP)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			start(t, h)
			granted, err := h.connect(t).RequestDelay(t.Context(), time.Minute)
			require.Equal(t, 5*time.Second, granted)
			var capped *source.DelayCappedError
			require.ErrorAs(t, err, &capped)
			require.Empty(t, capped.SetBy, "the file that was not applied is not named")
			require.ErrorContains(t, err, "SIGHUP")
		})
	}
}

// The host's etc is a file, so that the drop-in cannot be written below it, as on a host whose /etc is read-only. The drop-in goes
// to /run.
func TestTheSecondDirectoryIsUsedIfTheFirstIsReadOnly(t *testing.T) {
	h := newHost(t)
	h.writeFile(t, "etc", "a file where the directory should be: nothing can be written below it")
	h.startSystemdThatApplies(t, run+"/zz-kubegrace.conf")
	requireGranted(t, h.connect(t), time.Minute)
	require.FileExists(t, filepath.Join(h.root, run, "zz-kubegrace.conf"))
}

// The host's etc and run are files, so the drop-in cannot be written below either of them. logind's limit of 5 s is granted, and the
// error names both.
func TestNoWritableDirectoryIsAnError(t *testing.T) {
	h := newHost(t)
	h.writeFile(t, "etc", "")
	h.writeFile(t, "run", "")
	granted, err := h.connect(t).RequestDelay(t.Context(), time.Minute)
	require.Equal(t, 5*time.Second, granted)
	require.ErrorAs(t, err, new(*source.DelayCappedError))
	require.ErrorContains(t, err, filepath.Join(h.root, "etc"))
	require.ErrorContains(t, err, filepath.Join(h.root, "run"))
}

// An earlier agent has left its drop-in in /etc, with a limit of 5 s. This agent writes the file of the same name to /run, but systemd
// lets the file in /etc replace it. So 5 s are granted, and the error names the file in /etc.
func TestTheErrorNamesADropInThatWins(t *testing.T) {
	const left = etc + "/zz-kubegrace.conf" // by the earlier agent
	h := newHost(t)
	h.limitDelay(t, left, "5")
	h.options.DropInDirs = []string{"/run/systemd/logind.conf.d"}
	h.startSystemdThatApplies(t, left)
	requireGrantedLess(t, h.connect(t), 5*time.Second, "/"+left)
}

// The options choose the directory and the name of the drop-in.
func TestTheDropInPathIsAnOption(t *testing.T) {
	h := newHost(t)
	h.options.DropInDirs, h.options.DropInName = []string{"/run/systemd/logind.conf.d"}, "99-agent.conf"
	h.startSystemdThatApplies(t, run+"/99-agent.conf")
	requireGranted(t, h.connect(t), time.Minute)
	require.FileExists(t, filepath.Join(h.root, run, "99-agent.conf"))
}

// Each request for another delay changes the drop-in and reloads logind, even if it is for less. A request that logind's
// default of 5 s covers removes the drop-in.
func TestTheDropInFollowsTheRequest(t *testing.T) {
	h := newHost(t)
	const file = etc + "/zz-kubegrace.conf"
	path := filepath.Join(h.root, file)
	systemd1 := h.startSystemdThatApplies(t, file)
	session := h.connect(t)
	for _, step := range []struct {
		requested time.Duration
		reloads   int // so far
	}{
		{requested: 60 * time.Second, reloads: 1},
		{requested: 60 * time.Second, reloads: 1}, // nothing to do
		{requested: 40 * time.Second, reloads: 2},
		{requested: 90 * time.Second, reloads: 3},
	} {
		requireGranted(t, session, step.requested)
		require.Len(t, systemd1.Reloads(), step.reloads)
		require.FileExists(t, path)
	}
	requireGranted(t, session, 5*time.Second)
	require.NoFileExists(t, path)
}

// There is a file with the drop-in's name that this package has not written. A request for more than logind's limit of 5 s fails, and
// the file stays as it is. A request for less needs no drop-in, and succeeds.
func TestAForeignDropInIsNotChanged(t *testing.T) {
	for name, place := range map[string]func(path string) error{
		"somebody's file": func(path string) error { return os.WriteFile(path, []byte("[Login]\n"), 0o600) },
		"an empty file":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a mask":          func(path string) error { return os.Symlink(os.DevNull, path) },
		"a directory":     func(path string) error { return os.Mkdir(path, 0o755) },
		"a dead link":     func(path string) error { return os.Symlink("nowhere", path) },
		"a pipe":          func(path string) error { return syscall.Mkfifo(path, 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			path := filepath.Join(h.root, etc, "zz-kubegrace.conf")
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, place(path))
			before, err := os.Lstat(path)
			require.NoError(t, err)

			granted, err := h.connect(t).RequestDelay(t.Context(), time.Minute)
			require.Equal(t, 5*time.Second, granted)
			require.ErrorAs(t, err, new(*source.DelayCappedError))
			require.ErrorContains(t, err, path)
			after, err := os.Lstat(path)
			require.NoError(t, err)
			require.True(t, os.SameFile(before, after))
			require.Equal(t, before.ModTime(), after.ModTime())

			_, err = h.connect(t).RequestDelay(t.Context(), time.Second)
			require.NoError(t, err)
		})
	}
}
