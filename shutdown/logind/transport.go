//go:build linux

package logind

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"github.com/godbus/dbus/v5"
)

const (
	// fixedHeaderSize is the size of the fixed part of a message's header: byte order,
	// type, flags, version, length of the body, serial, length of the header fields.
	fixedHeaderSize = 16
	// maxReplySize bounds a reply without its fixed header. A list of 8,192 inhibitors,
	// logind's own maximum, takes less than a tenth of it.
	maxReplySize = 16 << 20
	// maxOtherSize bounds a signal or a call. logind's signals have 300 bytes.
	maxOtherSize = 4 << 10
)

// readMessage reads one message. It skips a message that is larger than anything that
// logind or the bus sends, and returns nil for it: every user of the bus may send 32 MiB,
// which would take twenty times as much memory once it is decoded.
func readMessage(from io.Reader) ([]byte, error) {
	header := make([]byte, fixedHeaderSize)
	if _, err := io.ReadFull(from, header); err != nil {
		return nil, err
	}
	var order binary.ByteOrder = binary.LittleEndian
	switch header[0] {
	case 'l':
	case 'B':
		order = binary.BigEndian
	default:
		return nil, fmt.Errorf("byte order %q of a D-Bus message is neither l nor B", header[0])
	}
	body, fields := int64(order.Uint32(header[4:])), int64(order.Uint32(header[12:]))
	remaining := (fields+7)/8*8 + body // the body begins at a multiple of 8
	limit := int64(maxOtherSize)
	if kind := dbus.Type(header[1]); kind == dbus.TypeMethodReply || kind == dbus.TypeError {
		limit = maxReplySize
	}
	if remaining > limit {
		_, err := io.CopyN(io.Discard, from, remaining)
		return nil, err
	}
	message := make([]byte, fixedHeaderSize+remaining)
	copy(message, header)
	_, err := io.ReadFull(from, message[fixedHeaderSize:])
	return message, err
}

// transport is a connection that accepts no descriptors and drops messages that are too
// large. godbus negotiates descriptors only on its own unix transport, so the bus
// delivers none here. Descriptors in a forged signal would otherwise stay open forever.
type transport struct {
	*net.UnixConn

	in            *bufio.Reader
	authenticated bool         // BEGIN was sent: messages follow
	message       bytes.Reader // the unread part of the current message
}

func newTransport(socket *net.UnixConn) *transport {
	return &transport{UnixConn: socket, in: bufio.NewReader(socket)}
}

// Write watches for the BEGIN that ends the authentication. godbus sends it before it
// reads the first message.
func (t *transport) Write(p []byte) (int, error) {
	if !t.authenticated && string(p) == "BEGIN\r\n" {
		t.authenticated = true
	}
	return t.UnixConn.Write(p)
}

func (t *transport) Read(p []byte) (int, error) {
	if !t.authenticated {
		return t.in.Read(p)
	}
	for t.message.Len() == 0 {
		message, err := readMessage(t.in)
		if err != nil {
			return 0, err
		}
		t.message.Reset(message)
	}
	return t.message.Read(p)
}
