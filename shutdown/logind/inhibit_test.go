//go:build linux && go1.25

package logind_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/logindfake"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// Inhibit takes a delay lock for shutdowns, with the default texts. Close releases it.
func TestInhibitTakesALock(t *testing.T) {
	h, session := newSession(t)
	lock, atLogind := h.inhibit(t, session)
	require.Equal(t, "shutdown", atLogind.What)
	require.Equal(t, filepath.Base(os.Args[0]), atLogind.Who, "the name of the program")
	require.Equal(t, "Pods need time to end before the node shuts down", atLogind.Why)
	require.Equal(t, "delay", atLogind.Mode)
	requireHeld(t, atLogind)
	require.NoError(t, lock.Close())
	awaitReleased(t, atLogind)
	require.NoError(t, lock.Close(), "a second Close closes nothing")
}

// logind gets the texts of Options.Who and Options.Why, which systemd-inhibit --list would show.
func TestWhoAndWhyAreOptions(t *testing.T) {
	h := newHost(t)
	h.options.Who, h.options.Why = "agent", "its pods"
	_, atLogind := h.inhibit(t, h.connect(t))
	require.Equal(t, "agent", atLogind.Who)
	require.Equal(t, "its pods", atLogind.Why)
}

// Close of a session must not release the session's lock: the next session has to take a new one first.
func TestTheLockOutlivesItsSession(t *testing.T) {
	h := newHost(t)
	session, err := h.source(t).Connect(t.Context())
	require.NoError(t, err)
	lock, atLogind := h.inhibit(t, session)
	require.NoError(t, session.Close())
	requireHeld(t, atLogind)
	require.NoError(t, lock.Close())
	awaitReleased(t, atLogind)
}

// The caller discards a lock without closing it. The garbage collector must not close the lock's descriptor, which would
// release the lock. The test also discards the end of a pipe: when that is collected, the discarded lock would be too.
func TestADiscardedLockIsHeld(t *testing.T) {
	h, session := newSession(t)
	_, err := session.Inhibit(t.Context())
	require.NoError(t, err)
	for range 2 { // finalizers run after the first collection
		read, _, err := os.Pipe()
		require.NoError(t, err)
		runtime.GC()
		runtime.GC()
		n, err := read.Read(make([]byte, 1)) // until the discarded other end is collected
		require.Zero(t, n)
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, read.Close())
	}
	requireHeld(t, h.login1.Locks()[0])
	require.NoError(t, session.Close())
}

// A child process starts while a lock is held. It must not inherit the lock: Close releases it although
// the child still runs.
func TestChildrenDoNotInheritTheLock(t *testing.T) {
	h := newHost(t)
	lock, atLogind := h.inhibit(t, h.connect(t))
	child := exec.CommandContext(t.Context(), "cat")
	in, err := child.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	require.NoError(t, lock.Close())
	awaitReleased(t, atLogind)
	require.NoError(t, in.Close())
	require.NoError(t, child.Wait())
}

// logind refuses two calls of Inhibit, which return its errors. The session stays usable: the third call takes a lock.
func TestInhibitSucceedsAfterARefusal(t *testing.T) {
	h, session := newSession(t)
	h.login1.Refuse(
		logindfake.Refusal{Name: "org.freedesktop.DBus.Error.AccessDenied", Text: "Permission denied"},
		logindfake.Refusal{Name: "org.freedesktop.DBus.Error.LimitsExceeded", Text: "Maximum number of inhibitors (8192) reached"},
	)
	for _, name := range []string{"org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.DBus.Error.LimitsExceeded"} {
		lock, err := session.Inhibit(t.Context())
		require.Nil(t, lock)
		var refused dbus.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, name, refused.Name)
	}
	_, atLogind := h.inhibit(t, session)
	requireHeld(t, atLogind)
}

// Eight callers call Inhibit at the same time. logind replies to the first call only after the seven others have returned.
// Each caller must get a lock of its own, and none may get lost.
func TestConcurrentCallersGetSeparateLocks(t *testing.T) {
	h, session := newSession(t)
	replyToTheFirst := h.login1.Delay()
	const callers = 8
	locks, errs := make([]io.Closer, callers), make([]error, callers)
	returned := make(chan struct{}, callers)
	for i := range callers {
		go func() {
			locks[i], errs[i] = session.Inhibit(t.Context())
			returned <- struct{}{}
		}()
	}
	for range callers - 1 {
		<-returned
	}
	replyToTheFirst()
	<-returned

	require.NoError(t, errors.Join(errs...))
	require.Len(t, h.login1.Held(), callers, "all locks that logind has granted are held")
	for _, lock := range locks {
		require.NoError(t, lock.Close())
	}
	for _, lock := range h.login1.Locks() {
		awaitReleased(t, lock)
	}
}

// Inhibit returns an error when its context ends, the session is closed or the bus is lost before logind replies. Nobody
// could release the lock of a late reply, so it must be closed on arrival.
func TestTheLockOfALateReplyIsClosed(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, h *host, session source.Session, cancel func()){
		"context ended":  func(_ *testing.T, _ *host, _ source.Session, cancel func()) { cancel() },
		"session closed": func(t *testing.T, _ *host, session source.Session, _ func()) { require.NoError(t, session.Close()) },
		"bus lost":       func(_ *testing.T, h *host, _ source.Session, _ func()) { h.bus.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			h, session := newSession(t)
			sendReply := h.login1.Delay() // logind replies when the test calls sendReply
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			inhibited := make(chan error, 1)
			go func() {
				_, err := session.Inhibit(ctx)
				inhibited <- err
			}()
			require.Eventually(t, func() bool { return h.login1.Calls("Inhibit") == 1 }, testTimeout, time.Millisecond)

			end(t, h, session, cancel)
			require.Error(t, <-inhibited)

			sendReply()
			require.Eventually(t, func() bool { return len(h.login1.Locks()) == 1 }, testTimeout, time.Millisecond)
			awaitReleased(t, h.login1.Locks()[0])
		})
	}
}
