// Command flood does to the agent, until it is killed, all that an unprivileged user of the machine can do. It
// opens connections and sends nothing on them, sends requests whose answers it never reads, and sends headers
// that do not end. It also sends every connection of the system bus signals that look like logind's, some with
// a large body.
package main

import (
	"io"
	"log"
	"net"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	agent = "127.0.0.1:10290"
	kept  = 2000 // open connections of each of the three kinds
)

// main opens three kinds of connections in the background, and sends signals on the bus.
func main() {
	requests := strings.Repeat("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 1000)
	go connect("")
	go connect(requests)
	go connect("GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("X-A: b\r\n", 500))
	signals()
}

// connect opens connections without end, and writes text to each. It keeps the newest ones open.
func connect(text string) {
	var open []io.Closer
	for {
		conn, err := net.DialTimeout("tcp", agent, time.Second)
		if err != nil {
			continue // the queue of the kernel is full
		}
		_ = conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = io.WriteString(conn, text) // as much as the agent accepts
		if open = append(open, conn); len(open) > kept {
			_ = open[0].Close()
			open = open[1:]
		}
	}
}

// signals sends PrepareForShutdown signals to each connection of the bus, addressed to its unique name. Such a
// signal arrives whatever match rules the receiver has.
func signals() {
	conn, err := dbus.ConnectSystemBus()
	if err != nil {
		log.Fatal(err)
	}
	large := make([]byte, 4<<20)
	for {
		var names []string
		if err := conn.BusObject().Call("org.freedesktop.DBus.ListNames", 0).Store(&names); err != nil {
			log.Fatal(err)
		}
		for _, name := range names {
			if !strings.HasPrefix(name, ":") || name == conn.Names()[0] {
				continue
			}
			for _, body := range [][]any{{true}, {true, large}, {large}} {
				conn.Send(&dbus.Message{
					Type: dbus.TypeSignal,
					Headers: map[dbus.HeaderField]dbus.Variant{
						dbus.FieldDestination: dbus.MakeVariant(name), dbus.FieldPath: dbus.MakeVariant(dbus.ObjectPath("/org/freedesktop/login1")),
						dbus.FieldInterface: dbus.MakeVariant("org.freedesktop.login1.Manager"), dbus.FieldMember: dbus.MakeVariant("PrepareForShutdown"),
						dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(body...)),
					},
					Body: body,
				}, nil)
			}
		}
	}
}
