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
	// headSize is the part of a message that has a fixed size: byte order, type, flags,
	// version, length of the body, serial, length of the header fields.
	headSize = 16
	// mostOfAReply bounds what an answer may have: 8,192 inhibitors, logind's own limit,
	// take less than a tenth of it.
	mostOfAReply = 16 << 20
	// mostOfTheRest bounds a signal or a call; logind's signals have 300 bytes.
	mostOfTheRest = 4 << 10
)

// readMessage reads one message. It gives nil for one that is larger than anything
// that logind or the bus sends: everybody on the bus may send 32 MiB, which would
// take twenty times as much memory once they are decoded.
func readMessage(from io.Reader) ([]byte, error) {
	head := make([]byte, headSize)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	var order binary.ByteOrder = binary.LittleEndian
	switch head[0] {
	case 'l':
	case 'B':
		order = binary.BigEndian
	default:
		return nil, fmt.Errorf("byte order %q of a D-Bus message is neither l nor B", head[0])
	}
	body, fields := int64(order.Uint32(head[4:])), int64(order.Uint32(head[12:]))
	rest := (fields+7)/8*8 + body // the body begins at a multiple of 8
	most := int64(mostOfTheRest)
	if kind := dbus.Type(head[1]); kind == dbus.TypeMethodReply || kind == dbus.TypeError {
		most = mostOfAReply
	}
	if rest > most {
		_, err := io.CopyN(io.Discard, from, rest)
		return nil, err
	}
	message := make([]byte, headSize+rest)
	copy(message, head)
	_, err := io.ReadFull(from, message[headSize:])
	return message, err
}

// guard is the way of a connection that takes no descriptors, and no message that is
// too large. godbus does not ask for descriptors over a transport that is not its own,
// so that the bus refuses to deliver any: those of a forged signal would stay open for
// ever.
type guard struct {
	*net.UnixConn

	in      *bufio.Reader
	begun   bool         // the authentication is over, what follows are messages
	message bytes.Reader // what is left of the message that is being read
}

func newGuard(socket *net.UnixConn) *guard {
	return &guard{UnixConn: socket, in: bufio.NewReader(socket)}
}

// Write sees the end of the authentication, which comes before any message is read.
func (g *guard) Write(p []byte) (int, error) {
	if !g.begun && string(p) == "BEGIN\r\n" {
		g.begun = true
	}
	return g.UnixConn.Write(p)
}

func (g *guard) Read(p []byte) (int, error) {
	if !g.begun {
		return g.in.Read(p)
	}
	for g.message.Len() == 0 {
		message, err := readMessage(g.in)
		if err != nil {
			return 0, err
		}
		g.message.Reset(message)
	}
	return g.message.Read(p)
}
