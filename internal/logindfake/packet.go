//go:build linux

package logindfake

import (
	"bytes"
	"encoding/binary"
	"maps"
	"syscall"

	"github.com/godbus/dbus/v5"
)

// packet is a message in a [Broker], with its descriptors.
type packet struct {
	*dbus.Message

	order binary.ByteOrder
	// body is the encoded body as it was received, because godbus cannot encode every body that it decodes; nil:
	// the broker made the message, so that its Body can be encoded.
	body        []byte
	descriptors []int
}

// encode encodes the message as a bus where these features are missing delivers it. With LackSenders it has no sender, and with
// LackInterface logind's signals have the interface that Talos uses. A body that was received is not encoded again but
// appended as it was, because godbus cannot encode every body that it decodes.
func (p *packet) encode(missing map[Lack]bool) ([]byte, error) {
	message := *p.Message
	if p.body != nil {
		message.Body = nil
	}
	message.Headers = maps.Clone(message.Headers) // other connections are sent the same message
	if missing[LackSenders] {
		delete(message.Headers, dbus.FieldSender)
	}
	if missing[LackInterface] && message.Headers[dbus.FieldInterface].Value() == login1Manager {
		message.Headers[dbus.FieldInterface] = dbus.MakeVariant(login1)
	}
	var encoded bytes.Buffer
	if err := message.EncodeTo(&encoded, p.order); err != nil {
		return nil, err
	}
	if message.Serial() == 0 { // made by the broker; godbus sets it only on its own connections
		p.order.PutUint32(encoded.Bytes()[8:], 1) // the serial number
	}
	if p.body != nil {
		p.order.PutUint32(encoded.Bytes()[4:], uint32(len(p.body))) // the length of the body
	}
	return append(encoded.Bytes(), p.body...), nil
}

// closeDescriptors closes the broker's copies of the descriptors.
func (p *packet) closeDescriptors() {
	for _, descriptor := range p.descriptors {
		_ = syscall.Close(descriptor) // nothing was written to it
	}
}

// descriptorsOf returns the descriptors in the control data of a socket.
func descriptorsOf(rights []byte) []int {
	var descriptors []int
	messages, _ := syscall.ParseSocketControlMessage(rights) // the kernel wrote it, so it parses
	for _, message := range messages {
		more, _ := syscall.ParseUnixRights(&message)
		descriptors = append(descriptors, more...)
	}
	return descriptors
}
