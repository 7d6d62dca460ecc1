//go:build linux

package logind

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/kubegrace/kubegrace/internal/logindconf"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

const (
	login1        = "org.freedesktop.login1"
	login1Path    = dbus.ObjectPath("/org/freedesktop/login1")
	login1Manager = login1 + ".Manager"
	logindUnit    = "systemd-logind.service"
)

// replyTimeout is the timeout of calls that are made for the manager, whose context may have no deadline. It is about
// half of the time that libdbus waits by default (25 s).
const replyTimeout = 12 * time.Second

// callTimeout is the timeout of calls that the session makes by itself, for example to verify the lock. It is
// short, because the session handles no signals during most of these calls.
const callTimeout = time.Second

// conn is a connection to the bus. A session makes all calls over one connection, like the kubelet,
// because a small broker may serve only one.
type conn struct {
	*dbus.Conn

	transport *transport
	// manager is addressed by logind's well-known name and not by the unique name of one process, so that calls
	// after a restart of logind reach the new process.
	manager dbus.BusObject
}

// dial connects to the bus at address; "": the system bus. ctx bounds only the connecting: when it ends
// later, the connection stays open.
func dial(ctx context.Context, address string, signals *signalQueue) (*conn, error) {
	connCtx, end := context.WithCancel(context.WithoutCancel(ctx))
	// Only the end of connCtx interrupts a handshake that hangs. So the end of ctx ends connCtx, until stop is called.
	stop := context.AfterFunc(ctx, end)
	c, err := connect(connCtx, address, signals)
	if isStopped := stop(); !isStopped { // ctx ended during the handshake, and has closed the connection
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		end()
		return nil, err
	}
	return c, nil
}

// connect opens a connection that is closed when ctx ends.
func connect(ctx context.Context, address string, signals *signalQueue) (*conn, error) {
	socket, err := dialSocket(ctx, address)
	if err != nil {
		return nil, err
	}
	transport := newTransport(socket)
	bus, err := dbus.NewConn(transport, dbus.WithContext(ctx), dbus.WithSignalHandler(signals))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the system bus: %w", err), socket.Close())
	}
	err = bus.Auth(nil) // as the user of this process
	if err == nil {
		err = bus.Hello()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the system bus: %w", err), bus.Close())
	}
	return &conn{Conn: bus, transport: transport, manager: bus.Object(login1, login1Path)}, nil
}

// callContext returns a context that ends with the connection, or after callTimeout.
func (c *conn) callContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Context(), callTimeout)
}

// property reads a property of logind's manager into *into. It asks logind each time, because even
// InhibitDelayMaxUSec, which logind declares constant, changes. The returned sequence number says which
// signals arrived before the reply.
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

// limit returns logind's limit: how long it delays a shutdown at most; 0: not at all.
func (c *conn) limit(ctx context.Context) (time.Duration, error) {
	var usec uint64
	if _, err := c.property(ctx, "InhibitDelayMaxUSec", &usec); err != nil {
		return 0, err
	}
	return logindconf.FromMicroseconds(usec), nil
}

// pendingKind returns the kind of the shutdown in progress. A logind before v257 does not tell it: the kind is unknown.
func (c *conn) pendingKind(ctx context.Context) source.Kind {
	var metadata map[string]dbus.Variant
	if _, err := c.property(ctx, "PreparingForShutdownWithMetadata", &metadata); err != nil {
		return source.KindUnknown
	}
	return kindOf(metadata)
}

// owner returns the unique bus name of the running logind process. A restarted logind has another name.
func (c *conn) owner(ctx context.Context) (string, error) {
	var owner string
	if err := c.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.GetNameOwner", 0, login1).Store(&owner); err != nil {
		return "", fmt.Errorf("find the owner of %s: %w", login1, err)
	}
	return owner, nil
}

// reload asks systemd to send logind a SIGHUP, as the kubelet does. logind then reads its configuration
// files again, but reload does not wait for that.
func (c *conn) reload(ctx context.Context) error {
	systemd := c.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1")
	if err := systemd.CallWithContext(ctx, "org.freedesktop.systemd1.Manager.KillUnit", 0, logindUnit, "all", int32(syscall.SIGHUP)).Err; err != nil {
		return fmt.Errorf("send SIGHUP to %s: %w", logindUnit, err)
	}
	return nil
}

// joinClose closes the connection, and returns err joined with the error of the close, if any.
func joinClose(err error, c *conn) error {
	if closeErr := c.Close(); closeErr != nil {
		return errors.Join(err, fmt.Errorf("close the connection to the system bus: %w", closeErr))
	}
	return err
}
