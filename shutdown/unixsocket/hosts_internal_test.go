//go:build go1.25

package unixsocket

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

// A shutdown is pending until half an hour (pendingFor) after the host should have shut down. The host shuts down at its
// deadline, or when the lock is closed if that is earlier. Without a lock it shuts down at once. A host that has neither a
// deadline nor Options.Delay waits for the lock, so its shutdown stays pending.
func TestPendingExpiresAfterHalfAnHour(t *testing.T) {
	for name, test := range map[string]struct {
		line     string        // the announcement
		delay    time.Duration // Options.Delay
		locked   bool          // a lock is held at the announcement
		released time.Duration // from the announcement to the close of the lock; 0: never
		expires  time.Duration // from the announcement until the shutdown is no longer pending; 0: never
	}{
		"with seconds":                      {line: "poweroff 90", locked: true, expires: 90*time.Second + pendingFor},
		"with seconds, released earlier":    {line: "poweroff 90", locked: true, released: time.Minute, expires: time.Minute + pendingFor},
		"with seconds, released later":      {line: "poweroff 90", locked: true, released: 2 * time.Minute, expires: 90*time.Second + pendingFor},
		"of a year":                         {line: "reboot 31536000", locked: true, expires: 8760*time.Hour + pendingFor},
		"without seconds":                   {line: "halt", locked: true},
		"without seconds, released":         {line: "halt", locked: true, released: time.Hour, expires: time.Hour + pendingFor},
		"without seconds, of Options.Delay": {line: "halt", delay: time.Minute, locked: true, expires: time.Minute + pendingFor},
		"with seconds and Options.Delay":    {line: "poweroff 90", delay: time.Minute, locked: true, expires: 90*time.Second + pendingFor},
		"without a lock":                    {line: "halt 90", expires: pendingFor},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src, err := New(Options{Path: "/unused", Delay: test.delay})
				require.NoError(t, err)
				s := &session{source: src}
				_, err = s.Pending(t.Context())
				require.ErrorIs(t, err, errors.ErrUnsupported, "nothing is announced yet")
				if test.locked {
					src.hosts.addLock()
				}
				event, err := parse(test.line, time.Now())
				require.NoError(t, err)
				src.hosts.announce(event, nil) // nil: this test needs no connection
				pending := func() *source.Event {
					found, err := s.Pending(t.Context())
					require.NoError(t, err)
					return found
				}
				began := time.Now()
				if test.released != 0 {
					<-time.After(test.released)
					src.hosts.removeLock()
				}
				if test.expires == 0 {
					<-time.After(10_000 * time.Hour) // more than a year
					require.Equal(t, &event, pending())
					return
				}
				<-time.After(test.expires - time.Since(began) - 1) // a nanosecond before
				require.Equal(t, &event, pending())
				<-time.After(time.Nanosecond)
				require.Nil(t, pending())
			})
		})
	}
}

// A shutdown has failed: the host still runs half an hour (pendingFor) after it should have shut down. If another shutdown is
// announced then, that one is pending.
func TestAShutdownAfterAFailedOneIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, err := New(Options{Path: "/unused"})
		require.NoError(t, err)
		for _, kind := range []source.Kind{source.KindPoweroff, source.KindKexec} {
			src.hosts.announce(source.Event{Kind: kind}, nil) // nil: this test needs no connection
			pending, err := (&session{source: src}).Pending(t.Context())
			require.NoError(t, err)
			require.Equal(t, kind, pending.Kind)
			<-time.After(pendingFor) // the host should have shut down at once, because no lock is held
		}
	})
}
