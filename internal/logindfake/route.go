//go:build linux

package logindfake

import (
	"encoding/binary"
	"os"

	"github.com/godbus/dbus/v5"
)

// route delivers a message to its destination: the bus itself, the connections with a match rule for a signal, or the
// owner of a name. It refuses calls to a name without an owner, and calls of methods that the bus lacks.
func (b *Broker) route(from *peer, message *packet) {
	message.Headers[dbus.FieldSender] = dbus.MakeVariant(from.name)
	name, _ := message.Headers[dbus.FieldDestination].Value().(string)
	to := b.owner(name)
	switch {
	case name == driver:
		b.answer(from, message.Message)
	case name == "" && message.Type == dbus.TypeSignal:
		b.broadcast(message)
	case from.refusesCall(message.Message):
		from.refuse(message.Message, "UnknownMethod")
	case to != nil:
		to.send(message)
	case message.Type == dbus.TypeMethodCall:
		from.refuse(message.Message, "ServiceUnknown")
	}
}

// broadcast delivers a signal to the connections with a match rule for it, unless the broker lacks the signal.
func (b *Broker) broadcast(signal *packet) {
	if b.missing[Lack(member(signal.Message))] {
		return
	}
	for _, p := range b.allPeers() {
		if p.hasRuleFor(signal.Message, b.owner) {
			p.send(signal)
		}
	}
}

// noOwner says, in place of a unique name, that nobody owns a name.
const noOwner = ""

// ownerChanged broadcasts NameOwnerChanged for a name. The owners are unique names, or noOwner.
func (b *Broker) ownerChanged(name, oldOwner, newOwner string) {
	b.broadcast(&packet{order: binary.LittleEndian, Message: &dbus.Message{Type: dbus.TypeSignal, Body: []any{name, oldOwner, newOwner}, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldSender:    dbus.MakeVariant(driver),
		dbus.FieldPath:      dbus.MakeVariant(driverPath),
		dbus.FieldInterface: dbus.MakeVariant(driver),
		dbus.FieldMember:    dbus.MakeVariant("NameOwnerChanged"),
		dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(name, oldOwner, newOwner)),
	}}})
}

// answer answers a call to the bus itself, such as Hello. It refuses a method that the test has chosen as a [Lack]: the
// value of such a Lack is the name of the method, as in LackOwner, which is GetNameOwner.
func (b *Broker) answer(from *peer, call *dbus.Message) {
	method := member(call)
	argument := ""
	if len(call.Body) > 0 {
		argument, _ = call.Body[0].(string)
	}
	switch {
	case from.missing[Lack(method)]:
		from.refuse(call, "UnknownMethod")
	case method == "Hello":
		from.reply(call, b.own(from, newUniqueName))
	case method == "RequestName":
		b.own(from, argument)
		from.reply(call, uint32(dbus.RequestNameReplyPrimaryOwner))
	case method == "AddMatch" && from.refusesRule(argument):
		from.refuse(call, "MatchRuleInvalid")
	case method == "AddMatch":
		from.addRule(argument)
		from.reply(call)
	case method == "GetConnectionUnixProcessID":
		from.reply(call, uint32(os.Getpid()))
	case method == "GetNameOwner":
		if owner := b.owner(argument); owner != nil {
			from.reply(call, owner.name)
		} else {
			from.refuse(call, "NameHasNoOwner")
		}
	default:
		from.refuse(call, "UnknownMethod")
	}
}
