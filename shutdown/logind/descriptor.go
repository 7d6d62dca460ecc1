//go:build linux

package logind

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/godbus/dbus/v5"
)

// errBadReply reports a reply without the descriptor that it should carry.
var errBadReply = errors.New("the reply has no descriptor")

// callForDescriptor calls a method of logind's manager whose reply carries one
// descriptor. owner is the unique bus name of logind.
//
// It uses a connection for this call only. Every user of the bus can send descriptors to
// a connection that accepts them; here each one is counted, and closed unless it belongs
// to the reply. The connection is closed when the call ends, and with it the kernel
// closes the descriptors that are still on their way, so a late reply leaks no lock.
func callForDescriptor(ctx context.Context, address, owner, method string, args ...any) (*os.File, error) {
	socket, err := dialSocket(ctx, address)
	if err != nil {
		return nil, err
	}
	c := &descriptorConn{socket: socket}
	defer c.closeReceived()
	stop := context.AfterFunc(ctx, func() { _ = socket.Close() }) // a blocked read or write then fails
	file, err := c.requestDescriptor(owner, method, args...)
	if !stop() && err != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	_ = socket.Close() // it may be closed already, and the outcome of the call is known
	return file, err
}

// requestDescriptor authenticates, says Hello to the bus, calls the method and returns
// the descriptor of its reply.
func (c *descriptorConn) requestDescriptor(owner, method string, args ...any) (*os.File, error) {
	if err := c.authenticate(); err != nil {
		return nil, fmt.Errorf("authenticate at the system bus: %w", err)
	}
	if _, err := c.call(dbusName, dbusName, "/org/freedesktop/DBus", dbusName, "Hello"); err != nil {
		return nil, err
	}
	reply, err := c.call(owner, login1, login1Path, login1Manager, method, args...)
	if err != nil {
		return nil, err
	}
	var index dbus.UnixFDIndex
	if err := dbus.Store(reply.Body, &index); err != nil || int(index) >= len(c.received) {
		return nil, errors.Join(errBadReply, err)
	}
	descriptor := c.received[index]
	c.received = append(c.received[:index], c.received[index+1:]...)
	return os.NewFile(uintptr(descriptor), "logind inhibitor"), nil
}

// descriptorConn is a connection to the bus that accepts descriptors. Only one goroutine
// may use it.
type descriptorConn struct {
	socket   *net.UnixConn
	serial   uint32
	received []int // the descriptors that came with the last message
}

// closeReceived closes the descriptors of the last message, except the one that was
// returned to the caller.
func (c *descriptorConn) closeReceived() {
	for _, descriptor := range c.received {
		_ = syscall.Close(descriptor) // nothing was written that could get lost
	}
	c.received = nil
}

// authenticate performs the handshake of the D-Bus specification with the mechanism EXTERNAL: the
// kernel tells the bus which user this is. The bus sends nothing unasked before BEGIN.
func (c *descriptorConn) authenticate() error {
	in := bufio.NewReader(c.socket)
	user := hex.EncodeToString([]byte(strconv.Itoa(os.Geteuid())))
	for _, step := range []struct{ say, hear string }{
		{"\x00AUTH EXTERNAL " + user, "OK "},
		{"NEGOTIATE_UNIX_FD", "AGREE_UNIX_FD"},
	} {
		if _, err := c.socket.Write([]byte(step.say + "\r\n")); err != nil {
			return err
		}
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		if !strings.HasPrefix(line, step.hear) {
			return fmt.Errorf("the bus says %q instead of %s", strings.TrimSpace(line), step.hear)
		}
	}
	_, err := c.socket.Write([]byte("BEGIN\r\n"))
	return err
}

// call sends a method call and waits for its reply. The reply comes from owner or, if it is an
// error, from the bus itself. All other messages are dropped together with their descriptors.
func (c *descriptorConn) call(owner, name string, path dbus.ObjectPath, iface, method string, args ...any) (*dbus.Message, error) {
	if err := c.send(name, path, iface, method, args); err != nil {
		return nil, err
	}
	for {
		c.closeReceived()
		raw, err := readMessage(c)
		if err != nil {
			return nil, err
		}
		if raw == nil || !isReply(raw) {
			continue
		}
		reply, err := dbus.DecodeMessage(bytes.NewReader(raw))
		if err != nil {
			return nil, err
		}
		sender, _ := reply.Headers[dbus.FieldSender].Value().(string)
		serial, _ := reply.Headers[dbus.FieldReplySerial].Value().(uint32)
		switch {
		case serial != c.serial || sender != owner && sender != dbusName:
		case reply.Type == dbus.TypeError:
			name, _ := reply.Headers[dbus.FieldErrorName].Value().(string)
			return nil, dbus.Error{Name: name, Body: reply.Body}
		default:
			return reply, nil
		}
	}
}

func isReply(raw []byte) bool {
	kind := dbus.Type(raw[1])
	return kind == dbus.TypeMethodReply || kind == dbus.TypeError
}

func (c *descriptorConn) send(name string, path dbus.ObjectPath, iface, method string, args []any) error {
	message := &dbus.Message{Type: dbus.TypeMethodCall, Body: args, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldDestination: dbus.MakeVariant(name),
		dbus.FieldPath:        dbus.MakeVariant(path),
		dbus.FieldInterface:   dbus.MakeVariant(iface),
		dbus.FieldMember:      dbus.MakeVariant(method),
	}}
	if len(args) > 0 {
		message.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(args...))
	}
	var raw bytes.Buffer
	if err := message.EncodeTo(&raw, binary.LittleEndian); err != nil {
		return err
	}
	c.serial++
	binary.LittleEndian.PutUint32(raw.Bytes()[8:], c.serial) // the serial; godbus only sets it on its own connections
	_, err := c.socket.Write(raw.Bytes())
	return err
}

// Read reads bytes and keeps the descriptors that come with them. Descriptors arrive with
// the first byte of their message. Package net sets close-on-exec on them, so that no
// child process inherits the lock and delays the shutdown.
func (c *descriptorConn) Read(p []byte) (int, error) {
	var rights [2048]byte // the kernel passes at most 253 descriptors at once
	n, size, _, _, err := c.socket.ReadMsgUnix(p, rights[:])
	messages, parseErr := syscall.ParseSocketControlMessage(rights[:size])
	for _, message := range messages {
		descriptors, err := syscall.ParseUnixRights(&message)
		c.received, parseErr = append(c.received, descriptors...), errors.Join(parseErr, err)
	}
	return n, errors.Join(err, parseErr)
}
