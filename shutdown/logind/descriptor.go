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

// errBadReply reports a reply without the descriptor that it should carry.
var errBadReply = errors.New("the reply has no descriptor")

// callForDescriptor calls a method of logind's manager whose reply carries one descriptor. It
// returns with the reply, or when ctx or the connection ends. The descriptor of a late reply is
// closed when it arrives.
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
	switch {
	case file == nil && err == nil:
		return nil, errBadReply
	case file != nil && err != nil: // ctx ended while the reply came
		err = errors.Join(err, file.Close())
	}
	if err != nil && !c.Connected() {
		err = errors.Join(dbus.ErrClosed, err)
	}
	if err != nil {
		return nil, err
	}
	return file, nil
}

// descriptors are those that came with replies and that their callers have not taken yet. Every
// user of the bus can send descriptors to a connection that accepts them: all others are closed
// when they arrive. Those that are kept are closed when no call waits any more.
type descriptors struct {
	mu       sync.Mutex // guards the fields below; never held while anything blocks
	expected int        // the calls that wait for a descriptor
	kept     map[uint32]*os.File
}

// expect announces a call whose reply carries a descriptor. Its caller calls take.
func (d *descriptors) expect() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expected++
}

// take returns the descriptor that came with the reply to the call with the given serial number, or
// nil if there is none.
func (d *descriptors) take(serial uint32) *os.File {
	d.mu.Lock()
	file, rest := d.kept[serial], d.kept
	delete(d.kept, serial)
	d.expected--
	if d.expected == 0 {
		d.kept = nil
	} else {
		rest = nil
	}
	d.mu.Unlock()
	for _, late := range rest {
		_ = late.Close() // nothing was written that could get lost
	}
	return file
}

// sort keeps the descriptor that came with a reply while a call waits for one, and closes all
// others. message is nil if it was too large.
func (d *descriptors) sort(message []byte, arrived []int) {
	if len(arrived) > 0 && d.keep(message, arrived[0]) {
		arrived = arrived[1:]
	}
	for _, descriptor := range arrived {
		// Closing a socket would block for as long as its sender has asked for (SO_LINGER).
		_ = syscall.SetsockoptLinger(descriptor, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{}) // it may be no socket
		_ = syscall.Close(descriptor)                                                                      // nothing was written that could get lost
	}
}

// keep keeps the descriptor of a reply. It reports false if it is not wanted.
func (d *descriptors) keep(message []byte, descriptor int) bool {
	if message == nil || dbus.Type(message[1]) != dbus.TypeMethodReply {
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

// descriptorReader reads from a socket and takes the descriptors that come with the bytes. They
// arrive with the first byte of their message, so whoever reads one message and no more has its
// descriptors. Package net sets close-on-exec on them, so that no child process inherits the lock
// and delays the shutdown.
type descriptorReader struct {
	*net.UnixConn

	rights  [2048]byte // the kernel passes at most 253 descriptors at once
	arrived []int
}

func (r *descriptorReader) Read(p []byte) (int, error) {
	n, size, _, _, err := r.ReadMsgUnix(p, r.rights[:])
	messages, parseErr := syscall.ParseSocketControlMessage(r.rights[:size])
	for _, message := range messages {
		descriptors, err := syscall.ParseUnixRights(&message)
		r.arrived, parseErr = append(r.arrived, descriptors...), errors.Join(parseErr, err)
	}
	return max(n, 0), errors.Join(err, parseErr) // n is negative on a closed socket
}

// taken returns the descriptors that have arrived since the last call.
func (r *descriptorReader) taken() []int {
	arrived := r.arrived
	r.arrived = nil
	return arrived
}
