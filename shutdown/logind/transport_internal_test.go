//go:build linux

package logind

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"
)

// The bus replies to NEGOTIATE_UNIX_FD only after BEGIN, when messages are expected, or not at all. The reply is skipped,
// and the messages behind it are read.
func TestALateNegotiationReplyIsSkipped(t *testing.T) {
	message := encodeMessage(t, dbus.TypeSignal, binary.LittleEndian, true)
	for name, answer := range map[string]string{"it agrees": "AGREE_UNIX_FD\r\n", "it refuses": "ERROR cannot\r\n", "it does not reply": ""} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
			require.NoError(t, err)
			defer func() { require.NoError(t, listener.Close()) }()
			socket, err := net.Dial("unix", listener.Addr().String())
			require.NoError(t, err)
			bus, err := listener.Accept()
			require.NoError(t, err)
			_, err = bus.Write(append([]byte(answer), append(message, message...)...))
			require.NoError(t, err)
			require.NoError(t, bus.Close())

			connection := newTransport(socket.(*net.UnixConn))
			connection.authenticated, connection.replyPending = true, true // negotiate has waited in vain
			read, err := io.ReadAll(connection)
			require.ErrorIs(t, err, io.EOF)
			require.Equal(t, append(message, message...), read)
			require.NoError(t, connection.Close())
		})
	}
}

// A reply, with a result or an error, is read if it has at most 16 MiB, because logind's list of inhibitors may be long. A
// signal is read if it has at most 4 KiB, because any user of the bus may send it. What is larger is skipped: readMessage
// returns nil.
func TestOnlyRepliesMayBeLarge(t *testing.T) {
	for size, isRead := range map[int]map[dbus.Type]bool{
		1 << 10:  {dbus.TypeSignal: true, dbus.TypeMethodReply: true, dbus.TypeError: true},
		1 << 20:  {dbus.TypeSignal: false, dbus.TypeMethodReply: true, dbus.TypeError: true},
		17 << 20: {dbus.TypeSignal: false, dbus.TypeMethodReply: false, dbus.TypeError: false},
	} {
		for kind, want := range isRead {
			message := encodeMessage(t, kind, binary.LittleEndian, strings.Repeat("x", size))
			read, err := readMessage(bytes.NewReader(message))
			require.NoError(t, err)
			require.Equal(t, want, read != nil, "%v of %d bytes", kind, size)
		}
	}
}

// isMissingFeature is true for errors of the bus which say that a method, property or rule does not exist, so that the
// feature is missing for good. It is false for errors that may pass.
func TestOnlyUnknownFeaturesAreMissingForGood(t *testing.T) {
	for name, isMissing := range map[string]bool{
		"org.freedesktop.DBus.Error.UnknownMethod":               true,
		"org.freedesktop.DBus.Error.UnknownProperty":             true,
		"org.freedesktop.DBus.Error.InvalidArgs":                 true,
		"org.freedesktop.DBus.Error.MatchRuleInvalid":            true,
		"org.freedesktop.DBus.Properties.Error.PropertyNotFound": true,
		"org.freedesktop.DBus.Error.NameHasNoOwner":              false,
		"org.freedesktop.DBus.Error.ServiceUnknown":              false,
		"org.freedesktop.DBus.Error.NoReply":                     false,
		"org.freedesktop.DBus.Error.Spawn.ServiceNotFound":       false,
		"org.freedesktop.DBus.Error.LimitsExceeded":              false,
	} {
		require.Equal(t, isMissing, isMissingFeature(fmt.Errorf("read: %w", dbus.Error{Name: name})), name)
	}
	require.False(t, isMissingFeature(nil))
	require.False(t, isMissingFeature(errors.New("UnknownMethod")))
}
