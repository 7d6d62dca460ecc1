//go:build linux

package logind_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/logindhost"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// connectNamed connects a session, and returns the bus names of its connections. A hostile user finds them
// in the same way, by listing all names.
func (h *host) connectNamed(t *testing.T) (session source.Session, names []string) {
	t.Helper()
	observer := h.bus.Connect()
	list := func() (all []string) {
		require.NoError(t, observer.BusObject().CallWithContext(t.Context(), "org.freedesktop.DBus.ListNames", 0).Store(&all))
		return all
	}
	before := list()
	session = h.connect(t)
	names = slices.DeleteFunc(list(), func(name string) bool { return slices.Contains(before, name) })
	require.NotEmpty(t, names)
	return session, names
}

// awaitDelivery returns when the bus has delivered everything sent before.
func awaitDelivery(t *testing.T, c *dbus.Conn) {
	t.Helper()
	require.NoError(t, c.BusObject().CallWithContext(t.Context(), "org.freedesktop.DBus.GetId", 0).Err)
}

// forgeAnnouncement sends a signal that looks like logind's announcement of a shutdown to one connection. more follows
// the true in its body.
func forgeAnnouncement(forger *dbus.Conn, to string, more ...any) {
	logindhost.Forge(forger, to, login1Manager, "PrepareForShutdown", login1Path, append([]any{true}, more...)...)
}

// requireOnlyItsOwnEvents requires that nothing sent before has announced a shutdown, and that the session still
// delivers its own logind's events.
func (h *host) requireOnlyItsOwnEvents(t *testing.T, session source.Session) {
	t.Helper()
	pending, err := session.Pending(t.Context()) // the answer comes after all that was sent before
	require.NoError(t, err)
	require.Nil(t, pending)
	h.login1.SetKind("kexec")
	h.announceShutdown()
	require.Equal(t, source.KindKexec, nextEvent(t, session).Kind)
	h.cancelShutdown()
	requireCancelled(t, session)
}

// An unprivileged user sends signals, with a descriptor each, to the session. All descriptors must be closed on
// arrival; otherwise that user could use up this process's limit of open descriptors.
func TestForgedDescriptorsAreNotKept(t *testing.T) {
	h := newHostOn(t, logindhost.StartSystemBus(t))
	session, sessionNames := h.connectNamed(t)
	forger := h.bus.ConnectAsNobodyWithDescriptors()
	file, err := os.Open(os.DevNull)
	require.NoError(t, err)
	descriptors := openDescriptors(t)
	for range 200 {
		for _, name := range sessionNames {
			forgeAnnouncement(forger, name, dbus.UnixFD(file.Fd()))
			logindhost.Forge(forger, name, "org.example.Any", "Thing", "/", dbus.UnixFD(file.Fd()))
		}
	}
	awaitDelivery(t, forger)
	h.requireOnlyItsOwnEvents(t, session)
	require.LessOrEqual(t, openDescriptors(t), descriptors)
	require.NoError(t, file.Close())
}

// logind has received a call of Inhibit, and its reply waits for the test. Meanwhile an unprivileged user sends signals with
// descriptors to the session's connections. Only the reply's descriptor may stay open, because it is the lock.
func TestForgedDescriptorsDuringInhibitAreNotKept(t *testing.T) {
	h := newHostOn(t, logindhost.StartSystemBus(t))
	session, sessionNames := h.connectNamed(t)
	forger := h.bus.ConnectAsNobodyWithDescriptors()
	file, err := os.Open(os.DevNull)
	require.NoError(t, err)
	h.inhibit(t, session) // opens also what the second call shares, so that it is counted below
	descriptors := openDescriptors(t)

	// A second call of Inhibit waits for its reply.
	sendReply := h.login1.Delay()
	defer sendReply() // also if the test fails before it sends the reply
	var lock io.Closer
	inhibited := make(chan error, 1)
	go func() {
		var err error
		lock, err = session.Inhibit(t.Context())
		inhibited <- err
	}()
	require.Eventually(t, func() bool { return h.login1.Calls("Inhibit") == 2 }, testTimeout, time.Millisecond)

	// The other user sends 500 signals, and then logind replies.
	for range 500 {
		for _, name := range sessionNames {
			forgeAnnouncement(forger, name, dbus.UnixFD(file.Fd()))
		}
	}
	awaitDelivery(t, forger)
	sendReply()
	require.NoError(t, <-inhibited)
	requireHeld(t, h.login1.Locks()[1])
	require.LessOrEqual(t, openDescriptors(t), descriptors+2, "the lock, and the scripted logind's end of it")
	require.NoError(t, lock.Close())
	require.NoError(t, file.Close())
	h.requireOnlyItsOwnEvents(t, session)
}

// An unprivileged user floods the session while nobody reads its events. The signals must be dropped on arrival,
// so that the heap grows by less than a quarter of their size. logind's own event is not lost.
func TestForgedSignalsAreNotQueued(t *testing.T) {
	h := newHostOn(t, logindhost.StartSystemBus(t))
	session, sessionNames := h.connectNamed(t)
	forger, _ := h.bus.ConnectAsNobody()
	h.announceShutdown()                           // the event is not read
	_, err := session.RequestDelay(t.Context(), 0) // the answer comes after the announcement, which so counts in before
	require.NoError(t, err)

	before := heapInUse()
	const signals, size = 8_000, 3 << 10
	text := strings.Repeat("x", size)
	for range signals {
		for _, name := range sessionNames {
			forgeAnnouncement(forger, name, text)
		}
	}
	awaitDelivery(t, forger)
	_, err = session.RequestDelay(t.Context(), 0) // the answer comes after the flood; Pending could take the event's place
	require.NoError(t, err)
	require.Less(t, heapInUse(), before+signals*size/4)
	requireAnnounced(t, session)
}

// heapInUse returns the used heap in bytes.
func heapInUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// An unprivileged user sends signals of several MiB, which take twenty times as much memory when decoded.
// The session must skip them: all 16 signals together allocate less than the size of one.
func TestLargeSignalsAreNotDecoded(t *testing.T) {
	h := newHostOn(t, logindhost.StartSystemBus(t))
	session, sessionNames := h.connectNamed(t)
	forger, raw := h.bus.ConnectAsNobody()
	message := &dbus.Message{
		Type: dbus.TypeSignal,
		Body: []any{[]dbus.Variant{}},
		Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldDestination: dbus.MakeVariant(sessionNames[0]),
			dbus.FieldPath:        dbus.MakeVariant(login1Path),
			dbus.FieldInterface:   dbus.MakeVariant(login1Manager),
			dbus.FieldMember:      dbus.MakeVariant("PrepareForShutdown"),
			dbus.FieldSignature:   dbus.MakeVariant(dbus.SignatureOf([]dbus.Variant{})),
		},
	}
	var header bytes.Buffer
	require.NoError(t, message.EncodeTo(&header, binary.LittleEndian))
	// The body is an array of variants with one byte each. The package dbus would take seconds to encode it.
	elements := bytes.Repeat([]byte("\x01y\x00\x01"), 1<<20)
	encoded := append(header.Bytes(), elements...)
	binary.LittleEndian.PutUint32(encoded[4:], uint32(4+len(elements)))            // the length of the body
	binary.LittleEndian.PutUint32(encoded[8:], 1000)                               // a serial that is not in use
	binary.LittleEndian.PutUint32(encoded[header.Len()-4:], uint32(len(elements))) // the length of the array

	allocated := func() uint64 {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.TotalAlloc
	}
	before := allocated()
	const signals = 16
	for range signals {
		_, err := raw.Write(encoded)
		require.NoError(t, err)
	}
	awaitDelivery(t, forger)
	_, err := session.Pending(t.Context()) // the answer comes after them
	require.NoError(t, err)
	require.Less(t, allocated()-before, uint64(len(encoded)), "%d messages of %d bytes", signals, len(encoded))
	h.requireOnlyItsOwnEvents(t, session)
}

// An unprivileged user may not own logind's bus name, but takes and releases one that begins with it. Each time the user
// also sends signals like those of logind and of the bus. They must neither announce a shutdown nor end the session.
func TestSignalsOfASimilarBusNameAreDropped(t *testing.T) {
	h := newHostOn(t, logindhost.StartSystemBus(t))
	session, sessionNames := h.connectNamed(t)
	forger, _ := h.bus.ConnectAsNobody()
	_, err := forger.RequestName(login1, dbus.NameFlagReplaceExisting)
	require.ErrorContains(t, err, "not allowed")
	for _, release := range []bool{false, true} { // the bus reports both changes of the name's owner
		if release {
			_, err = forger.ReleaseName(logindhost.LookAlike)
		} else {
			_, err = forger.RequestName(logindhost.LookAlike, dbus.NameFlagDoNotQueue)
		}
		require.NoError(t, err)
		require.NoError(t, forger.Emit(login1Path, login1Manager+".PrepareForShutdown", true))
		for _, name := range sessionNames {
			forgeAnnouncement(forger, name)
			logindhost.Forge(forger, name, "org.freedesktop.DBus", "NameOwnerChanged", "/org/freedesktop/DBus", login1, h.login1.Owner(), "")
		}
		awaitDelivery(t, forger)
		h.requireOnlyItsOwnEvents(t, session)
	}
}
