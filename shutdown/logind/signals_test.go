//go:build linux

package logind_test

import (
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/logindfake"
	"github.com/kubegrace/kubegrace/internal/logindhost"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

const (
	login1        = "org.freedesktop.login1"
	login1Manager = "org.freedesktop.login1.Manager"
	login1Path    = dbus.ObjectPath("/org/freedesktop/login1")
)

// logind announces a shutdown, cancels it and announces another one, which makes three events. The deadline of the first
// is logind's limit of 30 s after the announcement.
func TestEventsOfAShutdownAndItsCancellation(t *testing.T) {
	h := newHost(t)
	h.login1.SetLimit(30 * time.Second)
	session := h.connect(t)
	before := time.Now()
	h.announceShutdown()
	event := nextEvent(t, session)
	require.False(t, event.Cancelled)
	require.Equal(t, "logind", event.Origin)
	require.Equal(t, source.KindUnknown, event.Kind, "logind before v257 does not say the kind")
	require.WithinRange(t, event.Deadline, before.Add(30*time.Second), time.Now().Add(30*time.Second))
	h.cancelShutdown()
	requireCancelled(t, session)
	h.announceShutdown()
	requireAnnounced(t, session)
}

// logind v257, which SetKind makes of the fake, sends two signals for a shutdown, and in this test it sends both twice. They become one
// event, with the kind that one of the signals has in its metadata, or unknown for a type that is no shutdown, such as hibernate.
func TestBothSignalsAreOneShutdown(t *testing.T) {
	for sent, kind := range map[string]source.Kind{
		"poweroff":    source.KindPoweroff,
		"power-off":   source.KindPoweroff,
		"reboot":      source.KindReboot,
		"halt":        source.KindHalt,
		"kexec":       source.KindKexec,
		"soft-reboot": source.KindSoftReboot,
		"hibernate":   source.KindUnknown,
	} {
		t.Run(sent, func(t *testing.T) {
			h := newHost(t)
			h.login1.SetKind(sent)
			session := h.connect(t)
			h.announceShutdown()
			h.announceShutdown()
			require.Equal(t, kind, nextEvent(t, session).Kind)
			h.cancelShutdown()
			requireCancelled(t, session) // the next event
		})
	}
}

// The deadline of an event is the announcement plus the limit that logind has at that time. Without a limit the event has
// no deadline.
func TestTheDeadlineIsTheAnnouncementPlusTheLimit(t *testing.T) {
	for name, test := range map[string]struct {
		limit       time.Duration
		hasDeadline bool
	}{
		"infinite":   {limit: logindfake.Unlimited},
		"zero":       {limit: 0, hasDeadline: true},
		"an hour":    {limit: time.Hour, hasDeadline: true},
		"sub-second": {limit: 1500 * time.Microsecond, hasDeadline: true},
	} {
		t.Run(name, func(t *testing.T) {
			h, session := newSession(t)
			h.login1.SetLimit(test.limit) // after Connect: it is read with the event
			before := time.Now()
			h.announceShutdown()
			event := nextEvent(t, session)
			require.Equal(t, test.hasDeadline, !event.Deadline.IsZero())
			if test.hasDeadline {
				require.WithinRange(t, event.Deadline, before.Add(test.limit), time.Now().Add(test.limit))
			}
		})
	}
}

// Signals with invalid bodies, signals about something else, such as sleep, and the cancellation of a shutdown that was never announced
// are ignored. The last signal announces a shutdown, although with invalid metadata: it is the first event, of an unknown kind.
func TestSignalsThatAnnounceNothingAreIgnored(t *testing.T) {
	h, session := newSession(t)
	h.login1.Emit("PrepareForShutdown")
	h.login1.Emit("PrepareForShutdown", "true")
	h.login1.Emit("PrepareForShutdown", uint32(1))
	h.login1.Emit("PrepareForShutdown", []bool{true})
	h.login1.Emit("PrepareForShutdownWithMetadata")
	h.login1.Emit("PrepareForShutdownWithMetadata", map[string]dbus.Variant{}, true)
	h.login1.Emit("PrepareForSleep", true)
	h.login1.Emit("PrepareForShutdown", false)

	h.beginShutdownSilently() // otherwise the session, which also polls logind, would find no shutdown and cancel it
	h.login1.Emit("PrepareForShutdownWithMetadata", true, "not metadata")
	event := nextEvent(t, session)
	require.False(t, event.Cancelled)
	require.Equal(t, source.KindUnknown, event.Kind)
}

// Another user of the bus sends signals that look like those of logind and of the bus. They must neither
// announce a shutdown nor end the session: the first event is logind's own, with the kind kexec.
func TestForgedSignalsAreIgnored(t *testing.T) {
	h, session := newSession(t)
	forger := h.bus.Connect()

	// Broadcast: the bus matches the sender.
	require.NoError(t, forger.Emit(login1Path, login1Manager+".PrepareForShutdown", true))
	// Sent to each connection directly, which the bus delivers without a match.
	var names []string
	require.NoError(t, forger.BusObject().CallWithContext(t.Context(), "org.freedesktop.DBus.ListNames", 0).Store(&names))
	for _, name := range names {
		forgeAnnouncement(forger, name)
		logindhost.Forge(forger, name, login1Manager, "PrepareForShutdownWithMetadata", login1Path, true,
			map[string]dbus.Variant{"type": dbus.MakeVariant("halt")})
		logindhost.Forge(forger, name, "org.freedesktop.DBus", "NameOwnerChanged", "/org/freedesktop/DBus", login1, h.login1.Owner(), "")
	}
	awaitDelivery(t, forger)

	h.login1.SetKind("kexec")
	h.announceShutdown()
	require.Equal(t, source.KindKexec, nextEvent(t, session).Kind, "only logind's own signal counts")
}

// 200 announcements and cancellations arrive before the first event is read. The events must have
// logind's order, and none may get lost.
func TestEventsKeepTheirOrder(t *testing.T) {
	h, session := newSession(t)
	const rounds = 200
	h.beginShutdownSilently() // otherwise the session, which also polls logind, would find no shutdown and cancel it
	for range rounds {
		h.login1.Emit("PrepareForShutdown", true)
		h.login1.Emit("PrepareForShutdown", false)
	}
	for range rounds {
		requireAnnounced(t, session)
		requireCancelled(t, session)
	}
}

// logind v257 cancels a shutdown without a signal. The poll notices it and sends the cancellation. The
// next shutdown is an event again.
func TestACancellationWithoutASignalIsPolled(t *testing.T) {
	h, session := newSession(t)
	h.announceShutdown()
	requireAnnounced(t, session)
	h.endShutdownSilently()
	requireCancelled(t, session)
	h.announceShutdown()
	requireAnnounced(t, session)
}

// Pending returns nil without a shutdown. Then logind has a shutdown in progress whose announcement was missed. Pending
// returns it, and from then on its end is noticed: an event cancels it.
func TestPendingReadsLogind(t *testing.T) {
	h, session := newSession(t)
	event, err := session.Pending(t.Context())
	require.NoError(t, err)
	require.Nil(t, event)

	h.beginShutdownSilently()
	event, err = session.Pending(t.Context())
	require.NoError(t, err)
	require.Equal(t, &source.Event{Origin: "logind"}, event, "logind says neither the deadline nor, before v257, the kind")

	h.endShutdownSilently()
	requireCancelled(t, session)
}

// logind v257 says the kind of the shutdown in progress. Pending returns it.
func TestPendingReadsTheKind(t *testing.T) {
	h := newHost(t)
	h.login1.SetKind("reboot")
	h.beginShutdownSilently()
	event, err := h.connect(t).Pending(t.Context())
	require.NoError(t, err)
	require.Equal(t, source.KindReboot, event.Kind)
}

// Pending asks logind whether a shutdown is in progress, and of which kind. The shutdown is cancelled directly after one
// of these replies. Either Pending returns nil, or the cancellation follows as an event. The session does not poll in this
// test, so that it knows of the cancellation only by the signal.
func TestACancellationAfterPendingIsNoticed(t *testing.T) {
	for _, property := range []string{"PreparingForShutdown", "PreparingForShutdownWithMetadata"} {
		t.Run(property, func(t *testing.T) {
			h := newHost(t)
			h.times.Poll = time.Hour
			h.login1.SetKind("reboot")
			session := h.connect(t)
			for range 300 {
				h.beginShutdownSilently()
				cancelled := make(chan struct{})
				h.login1.AfterReply(property, func() {
					h.cancelShutdown()
					close(cancelled)
				})
				pending, err := session.Pending(t.Context())
				require.NoError(t, err)
				<-cancelled
				if pending != nil {
					requireCancelled(t, session)
				}

				// The next shutdown makes two events again.
				h.announceShutdown()
				requireAnnounced(t, session)
				h.cancelShutdown()
				requireCancelled(t, session)
			}
		})
	}
}
