//go:build linux

package logind

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/godbus/dbus/v5"
)

// errBadReply is the error if logind's reply should carry a file descriptor but has none.
var errBadReply = errors.New("the reply has no descriptor")

// callForDescriptor calls a method of logind's manager that returns one file descriptor, such as Inhibit, whose descriptor
// is the lock. It waits for the reply, or until ctx or the connection ends. A descriptor that arrives later is closed,
// because nobody could release that lock. A reply without a descriptor is errBadReply. If the connection has ended, the
// error wraps [dbus.ErrClosed].
func (c *conn) callForDescriptor(ctx context.Context, method string, args ...any) (*os.File, error) {
	message := &dbus.Message{Type: dbus.TypeMethodCall, Body: args, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldDestination: dbus.MakeVariant(login1),
		dbus.FieldPath:        dbus.MakeVariant(login1Path),
		dbus.FieldInterface:   dbus.MakeVariant(login1Manager),
		dbus.FieldMember:      dbus.MakeVariant(method),
		dbus.FieldSignature:   dbus.MakeVariant(dbus.SignatureOf(args...)),
	}}
	received := &c.transport.descriptors
	received.expect()
	call := <-c.SendWithContext(ctx, message, make(chan *dbus.Call, 1)).Done
	file, err := received.take(message.Serial()), call.Err
	if err == nil && file == nil {
		return nil, errBadReply
	}
	if err == nil {
		return file, nil
	}
	if file != nil { // ctx ended just when the reply arrived
		err = errors.Join(err, file.Close())
	}
	if !c.Connected() {
		err = errors.Join(dbus.ErrClosed, err)
	}
	return nil, err
}

// descriptors keeps the file descriptors of expected replies until their callers take them. All other
// descriptors are closed on arrival: every user of the bus can send them, and could use up this process's
// limit. When no call waits any more, descriptors that nobody has taken are closed too.
type descriptors struct {
	mu       sync.Mutex          // guards the fields below; never held while anything blocks
	expected int                 // calls that wait for a descriptor
	kept     map[uint32]*os.File // by the serial number of the call
}

// expect registers a call whose reply has a descriptor. The caller must call take.
func (d *descriptors) expect() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expected++
}

// take returns the descriptor of the reply to a call; nil if there is none. If no other call waits, it closes
// the descriptors that are left over.
func (d *descriptors) take(serial uint32) *os.File {
	d.mu.Lock()
	file := d.kept[serial]
	delete(d.kept, serial)
	d.expected--
	var leftOver map[uint32]*os.File
	if d.expected == 0 {
		leftOver, d.kept = d.kept, nil
	}
	d.mu.Unlock()
	for _, file := range leftOver {
		_ = file.Close() // an error loses nothing: nothing was written
	}
	return file
}

// keepOrClose handles the descriptors that arrived with a message. It keeps the first one if the message is
// an expected reply, and closes all others. message is nil if it was too large to be read.
func (d *descriptors) keepOrClose(message []byte, arrived []int) {
	if len(arrived) > 0 && d.keep(message, arrived[0]) {
		arrived = arrived[1:]
	}
	for _, descriptor := range arrived {
		// The sender may have set SO_LINGER, which makes closing a socket block.
		_ = syscall.SetsockoptLinger(descriptor, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{}) // fails if it is no socket
		_ = syscall.Close(descriptor)                                                                      // nothing was written
	}
}

// keep keeps a descriptor that has arrived with a message, under the serial number of the call that the message answers. It
// does so only if the message is a reply, a call waits for a descriptor, and the answered call has none yet. Otherwise isKept
// is false, and the caller must close the descriptor. A message that is nil, or cannot be decoded, is no reply.
func (d *descriptors) keep(message []byte, descriptor int) (isKept bool) {
	if message == nil || dbus.Type(message[1]) != dbus.TypeMethodReply { // the second byte is the type
		return false
	}
	reply, err := dbus.DecodeMessage(bytes.NewReader(message))
	if err != nil {
		return false
	}
	serial, _ := reply.Headers[dbus.FieldReplySerial].Value().(uint32)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.expected == 0 || d.kept[serial] != nil {
		return false
	}
	if d.kept == nil {
		d.kept = map[uint32]*os.File{}
	}
	d.kept[serial] = os.NewFile(uintptr(descriptor), "logind inhibitor")
	return true
}

// descriptorReader reads from a socket and collects the file descriptors that arrive. Descriptors arrive with
// the first byte of their message, so reading exactly one message collects exactly its descriptors. Package net
// sets close-on-exec, so that no child process inherits the lock.
type descriptorReader struct {
	*net.UnixConn

	rights  [2048]byte // enough for the 253 descriptors that the kernel passes at most at once
	arrived []int      // since the last takeArrived
}

// Read reads like a UnixConn, and adds the descriptors that arrive to r.arrived.
func (r *descriptorReader) Read(p []byte) (int, error) {
	n, rightsSize, _, _, err := r.ReadMsgUnix(p, r.rights[:])
	messages, parseErr := syscall.ParseSocketControlMessage(r.rights[:rightsSize])
	for _, message := range messages {
		descriptors, err := syscall.ParseUnixRights(&message)
		r.arrived, parseErr = append(r.arrived, descriptors...), errors.Join(parseErr, err)
	}
	return max(n, 0), errors.Join(err, parseErr) // n is negative on a closed socket
}

// takeArrived returns the descriptors that arrived since the last call.
func (r *descriptorReader) takeArrived() []int {
	arrived := r.arrived
	r.arrived = nil
	return arrived
}
