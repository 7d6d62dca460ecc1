//go:build linux

package logind

import (
	"context"
	"errors"
	"fmt"

	"github.com/godbus/dbus/v5"
)

const (
	login1        = "org.freedesktop.login1"
	login1Path    = dbus.ObjectPath("/org/freedesktop/login1")
	login1Manager = login1 + ".Manager"
)

// conn is a private connection to the bus on which logind is.
type conn struct {
	*dbus.Conn

	manager dbus.BusObject
}

// dial connects to the bus at address, the system bus if that is "". ctx bounds
// the connecting; the connection lives on until it is closed.
func dial(ctx context.Context, address string) (*conn, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end) // wakes the handshake, which knows no context
	bus, err := connect(address, dbus.WithContext(life),
		// The default handler starts a goroutine for each signal that finds its
		// channel full: a false could overtake its true.
		dbus.WithSignalHandler(dbus.NewSequentialSignalHandler()))
	if !stop() {
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		end()
		return nil, fmt.Errorf("connect to the system bus: %w", err)
	}
	return &conn{Conn: bus, manager: bus.Object(login1, login1Path)}, nil
}

func connect(address string, options ...dbus.ConnOption) (*dbus.Conn, error) {
	if address == "" {
		return dbus.ConnectSystemBus(options...)
	}
	return dbus.Connect(address, options...)
}

// property reads one of the manager's properties from logind itself: some of
// those that change are announced as constant (InhibitDelayMaxUSec).
func (c *conn) property(ctx context.Context, name string, into any) error {
	var value dbus.Variant
	if err := c.manager.CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, login1Manager, name).Store(&value); err != nil {
		return fmt.Errorf("read logind's %s: %w", name, err)
	}
	if err := value.Store(into); err != nil {
		return fmt.Errorf("read logind's %s: %w", name, err)
	}
	return nil
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
