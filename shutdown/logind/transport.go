//go:build linux

package logind

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	// fixedHeaderSize is the size of a message's fixed header: byte order, type, flags, version, length
	// of the body, serial, length of the header fields.
	fixedHeaderSize = 16
	// maxReplySize is the size of the largest reply that is read, without its fixed header. The longest reply is
	// logind's list of at most 8,192 inhibitors, which takes less than a tenth of this size.
	maxReplySize = 16 << 20
	// maxOtherSize is the size of the largest signal or call that is read. Every user of the bus can send these.
	// logind's signals have 300 bytes.
	maxOtherSize = 4 << 10
)

// readMessage reads one message. It returns nil for a message that it skips: one that is too large, or that godbus cannot
// decode without a panic. Every user of the bus may send 32 MiB, which takes twenty times as much memory when decoded.
func readMessage(from io.Reader) ([]byte, error) {
	header := make([]byte, fixedHeaderSize)
	if _, err := io.ReadFull(from, header); err != nil {
		return nil, err
	}
	remaining, err := sizeAfter(header)
	if err != nil {
		return nil, err
	}
	maxSize := int64(maxOtherSize)
	if kind := dbus.Type(header[1]); kind == dbus.TypeMethodReply || kind == dbus.TypeError {
		maxSize = maxReplySize
	}
	if remaining > maxSize {
		_, err := io.CopyN(io.Discard, from, remaining)
		return nil, err
	}
	message := make([]byte, fixedHeaderSize+remaining)
	copy(message, header)
	if _, err := io.ReadFull(from, message[fixedHeaderSize:]); err != nil {
		return nil, err
	}
	if !isDecodable(message) {
		return nil, nil
	}
	return message, nil
}

// sizeAfter returns the number of bytes that follow the fixed header of a message.
func sizeAfter(header []byte) (int64, error) {
	var order binary.ByteOrder
	switch header[0] {
	case 'l':
		order = binary.LittleEndian
	case 'B':
		order = binary.BigEndian
	default:
		return 0, fmt.Errorf("byte order %q of a D-Bus message is neither l nor B", header[0])
	}
	bodySize, fieldsSize := int64(order.Uint32(header[4:])), int64(order.Uint32(header[12:]))
	paddedFieldsSize := (fieldsSize + 7) / 8 * 8 // the body begins at a multiple of 8
	return paddedFieldsSize + bodySize, nil
}

// isDecodable reports whether godbus decodes a message, or refuses it, without a panic. godbus panics if a header field
// ends behind the length that the header states. A bus delivers no such message; something else at its address may.
func isDecodable(message []byte) (hasReturned bool) {
	defer func() { _ = recover() }()
	_, _ = dbus.DecodeMessage(bytes.NewReader(message)) // godbus handles the error when it decodes the message
	return true
}

// transport is the connection that godbus reads and writes. It protects the memory and the descriptors of this
// process from other users of the bus: it drops messages that are too large, and closes file descriptors that
// no call expects. Its handshake is the kubelet's, because a small broker may know no other.
type transport struct {
	in                descriptorReader
	descriptors       descriptors
	authenticated     bool         // the handshake has ended, and messages follow
	passesDescriptors bool         // the bus has agreed to pass descriptors
	replyPending      bool         // the bus has not replied to NEGOTIATE_UNIX_FD in time, but may still reply
	message           bytes.Reader // the part of the current message that godbus has not read yet
}

// newTransport returns a transport over a socket to the bus, before the handshake.
func newTransport(socket *net.UnixConn) *transport {
	return &transport{in: descriptorReader{UnixConn: socket}}
}

// Close closes the socket.
func (t *transport) Close() error { return t.in.Close() }

// Write passes on what godbus writes. Before the BEGIN that ends the handshake it asks the bus to pass descriptors. godbus asks
// for that only on a connection of its own type, which would keep every descriptor open that arrives.
func (t *transport) Write(p []byte) (int, error) {
	if !t.authenticated && string(p) == "BEGIN\r\n" {
		t.authenticated = true
		if err := t.negotiate(); err != nil {
			return 0, err
		}
	}
	return t.in.Write(p)
}

// negotiate asks the bus to pass file descriptors, and waits callTimeout for the reply. It is no error if the bus refuses or
// does not reply, because it may pass descriptors all the same. If the reply comes later, [transport.next] skips it.
func (t *transport) negotiate() error {
	if _, err := t.in.Write([]byte("NEGOTIATE_UNIX_FD\r\n")); err != nil {
		return err
	}
	if err := t.in.SetReadDeadline(time.Now().Add(callTimeout)); err != nil {
		return err
	}
	answer, err := readLine(t.in.UnixConn)
	// If half a line has arrived, next could not tell its rest from a message: the timeout is then an error.
	t.replyPending = errors.Is(err, os.ErrDeadlineExceeded) && answer == ""
	if err != nil && !t.replyPending {
		return err
	}
	t.passesDescriptors = strings.HasPrefix(answer, "AGREE_UNIX_FD")
	return t.in.SetReadDeadline(time.Time{})
}

// readLine reads one line byte by byte, so that it reads nothing of the messages that follow.
func readLine(from io.Reader) (line string, err error) {
	var text []byte
	for !bytes.HasSuffix(text, []byte("\n")) {
		next := make([]byte, 1)
		if _, err := io.ReadFull(from, next); err != nil {
			return string(text), err
		}
		text = append(text, next...)
	}
	return string(text), nil
}

// Read returns what the bus sends: the lines of the handshake, and then one message after another without those that are
// too large.
func (t *transport) Read(p []byte) (int, error) {
	if !t.authenticated {
		return t.in.Read(p)
	}
	for t.message.Len() == 0 {
		message, err := t.next()
		t.descriptors.keepOrClose(message, t.in.takeArrived())
		if err != nil {
			return 0, err
		}
		t.message.Reset(message) // empty if the message was skipped
	}
	return t.message.Read(p)
}

// next reads the next message. It returns nil for what is skipped: a message that is too large, or a late reply
// to NEGOTIATE_UNIX_FD.
func (t *transport) next() ([]byte, error) {
	if !t.replyPending {
		return readMessage(&t.in)
	}
	t.replyPending = false
	first := make([]byte, 1)
	if _, err := io.ReadFull(&t.in, first); err != nil {
		return nil, err
	}
	if first[0] == 'A' || first[0] == 'E' { // AGREE_UNIX_FD or ERROR; a message begins with l or B
		_, err := readLine(&t.in)
		return nil, err
	}
	return readMessage(io.MultiReader(bytes.NewReader(first), &t.in))
}
