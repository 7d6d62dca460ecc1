//go:build linux

package logind_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/logindfake"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// An agent in a container without the host's /etc writes a drop-in that logind does not see. Each request gets logind's
// 5 s and an error. logind is reloaded for the first request only, because another reload would not help.
func TestADropInThatLogindDoesNotSeeIsAnError(t *testing.T) {
	h := newHost(t)
	systemd1 := h.startSystemdThatIgnoresReloads(t)
	src := h.source(t)
	for range 5 {
		session, err := src.Connect(t.Context())
		require.NoError(t, err)
		requireGrantedLess(t, session, 5*time.Second, "") // no file sets the limit
		_, err = session.RequestDelay(t.Context(), time.Minute)
		require.ErrorContains(t, err, "is "+h.root+" the host's own file system?")
		require.NoError(t, session.Close())
	}
	require.Len(t, systemd1.Reloads(), 1)
}

// logind does not see the drop-in, so that no reload has an effect. RequestDelay reloads logind again only when the files have changed,
// and when another delay is requested.
func TestAnUnseenDropInIsTriedAgainAfterAChange(t *testing.T) {
	h := newHost(t)
	systemd1 := h.startSystemdThatIgnoresReloads(t)
	session := h.connect(t)
	requireDefault := func(requested time.Duration) {
		granted, err := session.RequestDelay(t.Context(), requested)
		require.Equal(t, 5*time.Second, granted)
		require.ErrorAs(t, err, new(*source.DelayCappedError))
	}
	requireDefault(time.Minute)
	require.Len(t, systemd1.Reloads(), 1)

	// By the files the limit is now sufficient without the drop-in. The drop-in is removed, and written again because logind has 5 s. Each
	// change is followed by a reload.
	h.limitDelay(t, etc+"/zzz-admin.conf", "2min")
	for range 5 {
		requireDefault(time.Minute)
	}
	require.Len(t, systemd1.Reloads(), 1+2)

	requireDefault(3 * time.Minute)
	require.Len(t, systemd1.Reloads(), 1+2+1)
}

// RemoveDropIn removes our drop-in and reloads logind, so that the limit is 5 s again.
func TestRemoveDropIn(t *testing.T) {
	h := newHost(t)
	h.startSystemdThatApplies(t, ours)
	src := h.source(t)
	session := connect(t, src)
	requireGranted(t, session, time.Minute)
	require.NoError(t, src.RemoveDropIn(t.Context()))
	require.NoFileExists(t, filepath.Join(h.root, ours))
	granted, err := session.RequestDelay(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, 5*time.Second, granted)
}

// Without a drop-in RemoveDropIn does nothing: it does not reload logind.
func TestRemoveDropInWithoutADropIn(t *testing.T) {
	h := newHost(t)
	systemd1 := h.startSystemdThatIgnoresReloads(t)
	require.NoError(t, h.source(t).RemoveDropIn(t.Context()))
	require.Empty(t, systemd1.Reloads())
}

// Somebody else has written a file with the name of the drop-in. RemoveDropIn returns an error and does not remove it.
func TestRemoveDropInKeepsAForeignFile(t *testing.T) {
	h := newHost(t)
	h.writeFile(t, etc+"/zz-kubegrace.conf", "[Login]\n")
	require.ErrorContains(t, h.source(t).RemoveDropIn(t.Context()), "not changed")
	require.FileExists(t, filepath.Join(h.root, etc, "zz-kubegrace.conf"))
}

// Without a bus the drop-in is removed anyway. The error says that logind was not reloaded.
func TestRemoveDropInNeedsTheBusOnlyForTheReload(t *testing.T) {
	h := newHost(t)
	h.startSystemdThatApplies(t, etc+"/zz-kubegrace.conf")
	requireGranted(t, h.connect(t), time.Minute)
	h.bus.Stop()
	require.ErrorContains(t, h.source(t).RemoveDropIn(t.Context()), "the drop-in was removed, but")
	require.NoFileExists(t, filepath.Join(h.root, etc, "zz-kubegrace.conf"))
}

// logind cannot parse a site's file, and so does not read the drop-in, whose name is later. The error names the site's file,
// although logind.conf sets the limit of 7 s.
func TestTheErrorNamesAFileThatLogindCannotParse(t *testing.T) {
	h := newHost(t)
	h.login1.SetLimit(7 * time.Second)
	systemd1 := h.startSystemdThatIgnoresReloads(t)
	h.limitDelay(t, "etc/systemd/logind.conf", "7")
	h.writeFile(t, etc+"/50-site.conf", "[Login] # for the backup\nKillUserProcesses=no\n")
	session := h.connect(t)
	for range 3 {
		granted, err := session.RequestDelay(t.Context(), time.Minute)
		require.Equal(t, 7*time.Second, granted)
		require.ErrorAs(t, err, new(*source.DelayCappedError))
		require.ErrorContains(t, err, "/"+etc+"/50-site.conf: systemd-logind cannot parse it")
	}
	require.Len(t, systemd1.Reloads(), 1)
}

// logind cannot parse a site's file, and applies no drop-in. While RequestDelay waits for that, the file is repaired. The next
// request reloads logind again.
func TestAFileThatIsRepairedDuringAReloadIsReadAgain(t *testing.T) {
	h := newHost(t)
	site := filepath.Join(h.root, etc, "50-site.conf")
	h.writeFile(t, etc+"/50-site.conf", "[Login\n")
	reloads := 0
	logindfake.StartSystemd1(t, h.bus.Address, func() {
		if reloads++; reloads > 1 {
			h.login1.SetLimit(time.Minute)
		}
		_ = os.Remove(site) // fails at the second reload
	})
	session := h.connect(t)
	_, err := session.RequestDelay(t.Context(), time.Minute)
	require.ErrorAs(t, err, new(*source.DelayCappedError))
	requireGranted(t, session, time.Minute)
}
