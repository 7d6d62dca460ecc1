//go:build linux

package logind_test

import (
	"io"
	"os"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"
)

// BenchmarkSourceToRelease measures the time from logind's signal until logind sees the lock released,
// without a manager. "plain" accepts the signal from any sender and does not read the limit.
func BenchmarkSourceToRelease(b *testing.B) {
	b.Run("way=kubegrace", func(b *testing.B) {
		h := newHost(b)
		h.times.Poll = 0 // the default
		session := connect(b, h.source(b))
		signalToRelease(b, h,
			func() (io.Closer, error) { return session.Inhibit(b.Context()) },
			func() { <-session.Events() })
	})
	b.Run("way=plain", func(b *testing.B) {
		h := newHost(b)
		bus := h.bus.Connect()
		signals := make(chan *dbus.Signal, 16)
		bus.Signal(signals)
		require.NoError(b, bus.AddMatchSignalContext(b.Context(), dbus.WithMatchMember("PrepareForShutdown")))
		signalToRelease(b, h,
			func() (io.Closer, error) { return plainInhibit(b, bus) },
			func() { <-signals })
	})
}

// plainInhibit takes a lock without kubegrace.
func plainInhibit(b *testing.B, bus *dbus.Conn) (io.Closer, error) {
	var fd dbus.UnixFD
	err := bus.Object(login1, login1Path).CallWithContext(b.Context(), login1Manager+".Inhibit", 0,
		"shutdown", "agent", "pods", "delay").Store(&fd)
	return os.NewFile(uintptr(fd), "lock"), err
}

// signalToRelease measures one shutdown: logind's signal, hear, the release of the lock, and until logind
// sees that. Taking the lock and the cancellation are not measured.
func signalToRelease(b *testing.B, h *host, inhibit func() (io.Closer, error), hear func()) {
	b.Helper()
	for b.Loop() {
		b.StopTimer()
		lock, err := inhibit()
		require.NoError(b, err)
		seen := h.login1.Locks()[len(h.login1.Locks())-1]
		b.StartTimer()

		h.login1.Prepare(true)
		hear()
		require.NoError(b, lock.Close())
		<-seen.Released

		b.StopTimer()
		h.login1.Prepare(false)
		hear()
		b.StartTimer()
	}
}
