//go:build linux

package logindfake

import (
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/godbus/dbus/v5"
)

// object is a service on the bus, such as the scripted logind. It answers method calls with messages of its own,
// because the dispatch of godbus can neither delay a reply nor report when it was sent.
type object struct {
	conn    *dbus.Conn
	answer  func(call *dbus.Message)
	running sync.WaitGroup
	calls   chan *dbus.Message
}

// newObject returns an object that owns a bus name until it is closed. It calls answer for each method call, in a
// goroutine.
func newObject(address, name string, answer func(o *object, call *dbus.Message)) (*object, error) {
	c, err := dbus.Connect(address)
	if err != nil {
		return nil, err
	}
	if reply, err := c.RequestName(name, dbus.NameFlagDoNotQueue); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		return nil, errors.Join(fmt.Errorf("own %s: reply %d", name, reply), err, c.Close())
	}
	o := &object{conn: c, calls: make(chan *dbus.Message, 4096)} // godbus drops a message if the channel is full
	o.answer = func(call *dbus.Message) { answer(o, call) }
	c.Eavesdrop(o.calls)
	start(&o.running, o.loop)
	return o, nil
}

// start runs f in a goroutine that running counts.
func start(running *sync.WaitGroup, f func()) {
	running.Add(1)
	go func() {
		defer running.Done()
		f()
	}()
}

// loop answers the method calls, until the connection ends.
func (o *object) loop() {
	for {
		select {
		case call, open := <-o.calls:
			if !open { // the connection to the bus is lost
				return
			}
			if call.Type == dbus.TypeMethodCall {
				start(&o.running, func() { o.answer(call) })
			}
		case <-o.conn.Context().Done():
			return
		}
	}
}

// close closes the connection and waits for calls in progress.
func (o *object) close() {
	o.conn.Eavesdrop(nil) // otherwise godbus closes the channel and panics when a message arrives at that moment
	_ = o.conn.Close()    // it may be closed already, or the daemon stopped
	o.running.Wait()
}

// reply answers a call with values. It returns after the reply was written, so that what follows arrives later.
func (o *object) reply(call *dbus.Message, values ...any) {
	o.send(call, dbus.TypeMethodReply, nil, values)
}

// refuse answers a call with an error.
func (o *object) refuse(call *dbus.Message, name, text string) {
	o.send(call, dbus.TypeError, map[dbus.HeaderField]dbus.Variant{dbus.FieldErrorName: dbus.MakeVariant(name)}, []any{text})
}

// send answers a call with a message of this type, with more headers and this body. The bus adds the sender.
func (o *object) send(call *dbus.Message, kind dbus.Type, more map[dbus.HeaderField]dbus.Variant, body []any) {
	const addedByTheBus = ""
	message := answerTo(call, kind, addedByTheBus, body)
	maps.Copy(message.Headers, more)
	o.conn.Send(message, nil) // nil: an answer has no reply
}

// answerTo returns the answer to a call. If sender is "" the bus adds it.
func answerTo(call *dbus.Message, kind dbus.Type, sender string, body []any) *dbus.Message {
	message := &dbus.Message{Type: kind, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldReplySerial: dbus.MakeVariant(call.Serial()),
	}}
	if to, known := call.Headers[dbus.FieldSender]; known {
		message.Headers[dbus.FieldDestination] = to
	}
	if sender != "" {
		message.Headers[dbus.FieldSender] = dbus.MakeVariant(sender)
	}
	if len(body) > 0 {
		message.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	return message
}

// member returns the name of the called method.
func member(call *dbus.Message) string {
	name, _ := call.Headers[dbus.FieldMember].Value().(string)
	return name
}
