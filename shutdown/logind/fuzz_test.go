//go:build linux

package logind

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/logindconf"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// encodeMessage returns a message as sent over the socket.
func encodeMessage(f testing.TB, kind dbus.Type, order binary.ByteOrder, body ...any) []byte {
	f.Helper()
	message := &dbus.Message{Type: kind, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldSender: dbus.MakeVariant(":1.7"), dbus.FieldPath: dbus.MakeVariant(login1Path), dbus.FieldInterface: dbus.MakeVariant(login1Manager),
		dbus.FieldErrorName: dbus.MakeVariant("an.Error"), dbus.FieldMember: dbus.MakeVariant(prepareForShutdown), dbus.FieldReplySerial: dbus.MakeVariant(uint32(5)), dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(body...)),
	}}
	var encoded bytes.Buffer
	require.NoError(f, message.EncodeTo(&encoded, order))
	binary.LittleEndian.PutUint32(encoded.Bytes()[8:], 7) // its serial, which is not 0
	return encoded.Bytes()
}

// FuzzMessage reads random bytes as a message of the bus. Nothing panics, a message that is kept is within the bound, and a
// signal announces a shutdown of one of the kinds, or nothing.
func FuzzMessage(f *testing.F) {
	metadata := map[string]dbus.Variant{"type": dbus.MakeVariant("soft-reboot"), "other": dbus.MakeVariant([]byte{1})}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		f.Add(encodeMessage(f, dbus.TypeSignal, order, true))
		f.Add(encodeMessage(f, dbus.TypeSignal, order, false, metadata))
		f.Add(encodeMessage(f, dbus.TypeSignal, order, true, map[string]dbus.Variant{"type": dbus.MakeVariant(5)}))
		f.Add(encodeMessage(f, dbus.TypeSignal, order, "true", dbus.UnixFD(3)))
		f.Add(encodeMessage(f, dbus.TypeSignal, order, login1, ":1.7", ""))
		f.Add(encodeMessage(f, dbus.TypeMethodReply, order, dbus.MakeVariant(uint64(5_000_000))))
		f.Add(encodeMessage(f, dbus.TypeMethodReply, order, dbus.MakeVariant(metadata)))
		f.Add(encodeMessage(f, dbus.TypeMethodReply, order, []inhibitor{{What: "shutdown", Who: "kubelet", Why: "why", Mode: "delay", PID: 7}}))
	}
	kinds := []source.Kind{source.KindUnknown, source.KindPoweroff, source.KindReboot, source.KindHalt, source.KindKexec, source.KindSoftReboot}
	f.Fuzz(func(t *testing.T, wire []byte) {
		text, err := readMessage(bytes.NewReader(wire))
		if err != nil || text == nil {
			return
		}
		require.LessOrEqual(t, len(text), fixedHeaderSize+maxReplySize)
		message, err := dbus.DecodeMessage(bytes.NewReader(text))
		if err != nil {
			return
		}
		_, kind, ok := parsePrepare(message.Body)
		require.Contains(t, kinds, kind)
		if !ok {
			require.Zero(t, kind)
		}
		var (
			value    dbus.Variant
			limit    uint64
			pending  bool
			metadata map[string]dbus.Variant
			list     []inhibitor
			targets  = []any{&limit, &pending, &metadata, &list}
		)
		for _, into := range targets { // may fail, but must not panic
			_ = dbus.Store(message.Body, into)
			if dbus.Store(message.Body, &value) == nil {
				_ = value.Store(into)
			}
		}
		require.Contains(t, kinds, kindOf(metadata))
		require.GreaterOrEqual(t, logindconf.FromMicroseconds(limit), time.Duration(0))
	})
}
