//go:build linux

package bustest

import (
	"maps"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"
)

// object answers method calls with messages that it makes itself: the dispatch of godbus
// can neither delay a reply nor tell when the reply was sent.
type object struct {
	conn   *dbus.Conn
	answer func(call *dbus.Message)
	wg     sync.WaitGroup
	calls  chan *dbus.Message
}

// serve returns an object that owns a bus name until it is closed or the test ends.
func serve(t testing.TB, address, name string, answer func(o *object, call *dbus.Message)) *object {
	t.Helper()
	c, err := dbus.Connect(address)
	require.NoError(t, err)
	reply, err := c.RequestName(name, dbus.NameFlagDoNotQueue)
	require.NoError(t, err)
	require.Equal(t, dbus.RequestNameReplyPrimaryOwner, reply)
	o := &object{conn: c, calls: make(chan *dbus.Message, 4096)}
	o.answer = func(call *dbus.Message) { answer(o, call) }
	c.Eavesdrop(o.calls)
	o.wg.Add(1)
	go func() {
		defer o.wg.Done()
		o.loop()
	}()
	t.Cleanup(o.close)
	return o
}

func (o *object) loop() {
	for {
		select {
		case call, open := <-o.calls:
			if !open { // the connection to the bus is lost
				return
			}
			if call.Type == dbus.TypeMethodCall {
				o.wg.Add(1)
				go func() {
					defer o.wg.Done()
					o.answer(call)
				}()
			}
		case <-o.conn.Context().Done():
			return
		}
	}
}

// close closes the connection and waits for the calls that are being answered.
func (o *object) close() {
	o.conn.Eavesdrop(nil) // otherwise godbus closes the channel and panics when a message arrives at that moment
	_ = o.conn.Close()    // it may be closed already, or the daemon stopped
	o.wg.Wait()
}

// reply sends a reply with values. It returns when the message was written.
func (o *object) reply(call *dbus.Message, values ...any) {
	o.send(call, dbus.TypeMethodReply, nil, values)
}

// refuse sends an error reply.
func (o *object) refuse(call *dbus.Message, name, text string) {
	o.send(call, dbus.TypeError, map[dbus.HeaderField]dbus.Variant{dbus.FieldErrorName: dbus.MakeVariant(name)}, []any{text})
}

func (o *object) send(call *dbus.Message, kind dbus.Type, more map[dbus.HeaderField]dbus.Variant, body []any) {
	message := &dbus.Message{Type: kind, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldDestination: call.Headers[dbus.FieldSender],
		dbus.FieldReplySerial: dbus.MakeVariant(call.Serial()),
	}}
	maps.Copy(message.Headers, more)
	if len(body) > 0 {
		message.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	o.conn.Send(message, nil)
}

// member returns the name of the called method.
func member(call *dbus.Message) string {
	name, _ := call.Headers[dbus.FieldMember].Value().(string)
	return name
}

// Forge sends a signal to one connection, which receives it without a match. Every
// process on the system bus may do that.
func Forge(c *dbus.Conn, to, iface, name string, path dbus.ObjectPath, body ...any) {
	message := &dbus.Message{Type: dbus.TypeSignal, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldDestination: dbus.MakeVariant(to),
		dbus.FieldPath:        dbus.MakeVariant(path),
		dbus.FieldInterface:   dbus.MakeVariant(iface),
		dbus.FieldMember:      dbus.MakeVariant(name),
	}}
	if len(body) > 0 {
		message.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	c.Send(message, nil)
}
