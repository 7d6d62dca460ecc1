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

// errBadReply is an answer without the one descriptor that was asked for.
var errBadReply = errors.New("the reply has no descriptor")

// callForDescriptor calls a method of logind's manager that answers with one
// descriptor. It does so over a connection of its own, because whoever may be on the
// bus can send descriptors to a connection that takes them: here every one is counted,
// and closed unless it is the answer. The connection ends with the call, whatever
// becomes of it, and the kernel closes what was on its way; so a reply that comes too
// late is lost to nobody. owner is the unique name of logind.
func callForDescriptor(ctx context.Context, address, owner, method string, args ...any) (*os.File, error) {
	socket, err := dialSocket(ctx, address)
	if err != nil {
		return nil, err
	}
	c := &descriptorConn{socket: socket}
	defer c.closeReceived()
	stop := context.AfterFunc(ctx, func() { _ = socket.Close() }) // whoever reads is told
	file, err := c.ask(owner, method, args...)
	if !stop() && err != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	_ = socket.Close() // it may be closed, and the answer is there or not
	return file, err
}

// ask authenticates at the bus, says Hello and calls the method, whose answer has the
// descriptor in it.
func (c *descriptorConn) ask(owner, method string, args ...any) (*os.File, error) {
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

// descriptorConn is a connection to the bus that takes descriptors. It is used by one
// goroutine.
type descriptorConn struct {
	socket   *net.UnixConn
	serial   uint32
	received []int // descriptors of the message that was read last
}

// closeReceived closes the descriptors that the last message brought and nobody took.
func (c *descriptorConn) closeReceived() {
	for _, descriptor := range c.received {
		_ = syscall.Close(descriptor) // nobody has written to it
	}
	c.received = nil
}

// authenticate is the bus's own handshake, with the user whom the kernel vouches for.
// The bus says nothing of its own accord before BEGIN.
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

// call sends a call and waits for its reply, which comes from owner or, as an error,
// from the bus. All else is dropped, with its descriptors.
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
	binary.LittleEndian.PutUint32(raw.Bytes()[8:], c.serial) // godbus counts for its own connections only
	_, err := c.socket.Write(raw.Bytes())
	return err
}

// Read takes descriptors in. They come with the first byte of their message and with
// the close-on-exec flag, so that no child of the agent inherits the lock and holds
// the host.
func (c *descriptorConn) Read(p []byte) (int, error) {
	var rights [2048]byte // the kernel passes 253 descriptors at most
	n, size, _, _, err := c.socket.ReadMsgUnix(p, rights[:])
	messages, parseErr := syscall.ParseSocketControlMessage(rights[:size])
	for _, message := range messages {
		descriptors, err := syscall.ParseUnixRights(&message)
		c.received, parseErr = append(c.received, descriptors...), errors.Join(parseErr, err)
	}
	return n, errors.Join(err, parseErr)
}
