//go:build linux

package logind

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	login1        = "org.freedesktop.login1"
	login1Path    = dbus.ObjectPath("/org/freedesktop/login1")
	login1Manager = login1 + ".Manager"
)

// replyTimeout bounds whatever is asked of the bus, where the caller's context
// does not: a process that is stopped answers nothing. libdbus waits 25 s.
const replyTimeout = 12 * time.Second

// conn is a private connection to the bus on which logind is.
type conn struct {
	*dbus.Conn

	// manager is called by logind's well-known name: a call after a restart reaches
	// the new process, and no answer comes from anybody else.
	manager dbus.BusObject
}

// dial connects to the bus at address, the system bus if that is "". ctx bounds
// the connecting; the connection lives on until it is closed. heard gets what
// comes as a signal; nil: whoever registers with the connection.
func dial(ctx context.Context, address string, heard dbus.SignalHandler) (*conn, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end) // the handshake knows no context but the connection's
	bus, err := connect(life, address, heard)
	if !stop() { // ctx has ended, and with it the connection
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		end()
		return nil, err
	}
	return &conn{Conn: bus, manager: bus.Object(login1, login1Path)}, nil
}

// connect gives a connection that is closed when life ends. It takes no descriptors,
// see [guard].
func connect(life context.Context, address string, heard dbus.SignalHandler) (*dbus.Conn, error) {
	socket, err := dialSocket(life, address)
	if err != nil {
		return nil, err
	}
	options := []dbus.ConnOption{dbus.WithContext(life)}
	if heard != nil {
		options = append(options, dbus.WithSignalHandler(heard))
	}
	bus, err := dbus.NewConn(newGuard(socket), options...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the system bus: %w", err), socket.Close())
	}
	err = bus.Auth(nil)
	if err == nil {
		err = bus.Hello()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the system bus: %w", err), bus.Close())
	}
	return bus, nil
}

// property reads one of the manager's properties from logind itself: some of
// those that change are announced as constant (InhibitDelayMaxUSec). The sequence
// tells which signals came before the answer.
func (c *conn) property(ctx context.Context, name string, into any) (dbus.Sequence, error) {
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	var value dbus.Variant
	call := c.manager.CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, login1Manager, name)
	err := call.Store(&value)
	if err == nil {
		err = value.Store(into)
	}
	if err != nil {
		return dbus.NoSequence, fmt.Errorf("read logind's %s: %w", name, err)
	}
	return call.ResponseSequence, nil
}

// owner is the unique name of the logind that answers now.
func (c *conn) owner(ctx context.Context) (string, error) {
	var owner string
	if err := c.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.GetNameOwner", 0, login1).Store(&owner); err != nil {
		return "", fmt.Errorf("find the owner of %s: %w", login1, err)
	}
	return owner, nil
}

// joinClose closes the connection and adds what went wrong in it to err.
func joinClose(err error, c *conn) error {
	if failed := c.Close(); failed != nil {
		return errors.Join(err, fmt.Errorf("close the connection to the system bus: %w", failed))
	}
	return err
}
