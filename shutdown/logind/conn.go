//go:build linux

package logind

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

const (
	login1        = "org.freedesktop.login1"
	login1Path    = dbus.ObjectPath("/org/freedesktop/login1")
	login1Manager = login1 + ".Manager"
)

// replyTimeout bounds every call over the bus that the caller's context does not bound. A
// stopped process does not answer. libdbus waits 25 s.
const replyTimeout = 12 * time.Second

// callTimeout bounds the calls that a session makes without a caller's context.
const callTimeout = time.Second

// conn is a private connection to the bus that logind is on.
type conn struct {
	*dbus.Conn

	// manager is addressed by logind's well-known name. A call after a restart of logind
	// therefore reaches the new process, and godbus accepts no reply from another sender.
	manager dbus.BusObject
}

// dial connects to the bus at address; an empty address means the system bus. ctx bounds only the
// connecting: the connection stays open until it is closed. Signals are delivered to the given
// handler; if that is nil, to whoever registers with the connection.
func dial(ctx context.Context, address string, signals dbus.SignalHandler) (*conn, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end) // the handshake only heeds the connection's context
	bus, err := connect(life, address, signals)
	if !stop() { // ctx has ended and closed the connection
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		end()
		return nil, err
	}
	return &conn{Conn: bus, manager: bus.Object(login1, login1Path)}, nil
}

// connect opens a connection that is closed when life ends. It accepts no descriptors,
// see [transport].
func connect(life context.Context, address string, signals dbus.SignalHandler) (*dbus.Conn, error) {
	socket, err := dialSocket(life, address)
	if err != nil {
		return nil, err
	}
	options := []dbus.ConnOption{dbus.WithContext(life)}
	if signals != nil {
		options = append(options, dbus.WithSignalHandler(signals))
	}
	bus, err := dbus.NewConn(newTransport(socket), options...)
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

// callContext returns the context of a call that a session makes by itself. It ends with
// the connection, or after callTimeout.
func (c *conn) callContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Context(), callTimeout)
}

// property reads a property of logind's manager from logind itself, without a cache, because logind
// declares some properties as constant that do change (InhibitDelayMaxUSec). The returned sequence
// number orders the reply among the signals of the connection.
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

// limit returns how long logind lets inhibitors delay a shutdown. 0 means not at all.
func (c *conn) limit(ctx context.Context) (time.Duration, error) {
	var usec uint64
	if _, err := c.property(ctx, "InhibitDelayMaxUSec", &usec); err != nil {
		return 0, err
	}
	return fromMicroseconds(usec), nil
}

// pendingKind returns the kind of the shutdown that is under way. It is unknown for a
// logind before v257.
func (c *conn) pendingKind(ctx context.Context) source.Kind {
	var metadata map[string]dbus.Variant
	if _, err := c.property(ctx, "PreparingForShutdownWithMetadata", &metadata); err != nil {
		return source.KindUnknown
	}
	return kindOf(metadata)
}

// owner returns the unique bus name of the current logind process.
func (c *conn) owner(ctx context.Context) (string, error) {
	var owner string
	if err := c.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.GetNameOwner", 0, login1).Store(&owner); err != nil {
		return "", fmt.Errorf("find the owner of %s: %w", login1, err)
	}
	return owner, nil
}

// subscribe asks the bus for signals. Each match includes the sender, so the bus does not
// deliver broadcasts of other processes.
func (c *conn) subscribe(ctx context.Context, matches ...[]dbus.MatchOption) error {
	for _, match := range matches {
		if err := c.AddMatchSignalContext(ctx, match...); err != nil {
			return fmt.Errorf("subscribe to logind's signals: %w", err)
		}
	}
	return nil
}

// joinClose closes the connection and joins the error of closing to err.
func joinClose(err error, c *conn) error {
	if failed := c.Close(); failed != nil {
		return errors.Join(err, fmt.Errorf("close the connection to the system bus: %w", failed))
	}
	return err
}
