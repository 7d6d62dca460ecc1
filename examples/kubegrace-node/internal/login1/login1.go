// Package login1 asks systemd-logind for its limit and its locks. It changes nothing. A Bus may be used
// concurrently. Errors say that the bus, or logind on it, does not answer. The tests of packages command and
// inspect cover it, with a fake logind on a real bus.
package login1

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/kubegrace/kubegrace/internal/logindconf"
)

const (
	name    = "org.freedesktop.login1"
	manager = name + ".Manager"
)

// ErrNotRunning is returned while systemd-logind does not run: nobody owns its name on the bus.
var ErrNotRunning = errors.New("systemd-logind does not run")

// Lock is an inhibitor lock for shutdowns, as logind lists it.
type Lock struct {
	What string `json:"what"`
	Who  string `json:"who"`
	Why  string `json:"why"`
	Mode string `json:"mode"`
	UID  uint32 `json:"uid"`
	PID  uint32 `json:"pid"`
}

// Bus is a connection to the system bus. Its calls never start logind, which a call to a bus name otherwise
// does.
type Bus struct{ conn *dbus.Conn }

// Ask connects to the bus at an address, "" for the system bus, calls a function with the connection, and
// closes it.
func Ask(ctx context.Context, address string, call func(Bus) error) error {
	connect := dbus.ConnectSystemBus
	if address != "" {
		connect = func(opts ...dbus.ConnOption) (*dbus.Conn, error) { return dbus.Connect(address, opts...) }
	}
	conn, err := connect(dbus.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("failed to reach the system bus: %w", err)
	}
	return errors.Join(call(Bus{conn}), conn.Close())
}

// call calls a method of logind and stores the answer in reply, a pointer.
func (b Bus) call(ctx context.Context, method string, reply any, args ...any) error {
	err := b.conn.Object(name, "/org/freedesktop/login1").CallWithContext(ctx, method, dbus.FlagNoAutoStart, args...).Store(reply)
	var refused dbus.Error
	if errors.As(err, &refused) && (refused.Name == "org.freedesktop.DBus.Error.NameHasNoOwner" || refused.Name == "org.freedesktop.DBus.Error.ServiceUnknown") {
		return ErrNotRunning
	}
	if err != nil {
		return fmt.Errorf("failed to ask systemd-logind: %w", err)
	}
	return nil
}

// read reads a property of logind's manager.
func read[T any](ctx context.Context, b Bus, property string) (value T, err error) {
	var variant dbus.Variant
	if err := b.call(ctx, "org.freedesktop.DBus.Properties.Get", &variant, manager, property); err != nil {
		return value, err
	}
	value, ok := variant.Value().(T)
	if !ok {
		return value, fmt.Errorf("systemd-logind answers with %s for %s", variant, property)
	}
	return value, nil
}

// Limit returns how long locks can delay a shutdown (InhibitDelayMaxSec); [logindconf.Unlimited] means without
// end.
func (b Bus) Limit(ctx context.Context) (time.Duration, error) {
	microseconds, err := read[uint64](ctx, b, "InhibitDelayMaxUSec")
	return logindconf.FromMicroseconds(microseconds), err
}

// Preparing reports whether a shutdown is pending: logind has announced it and waits for delay locks.
func (b Bus) Preparing(ctx context.Context) (bool, error) {
	return read[bool](ctx, b, "PreparingForShutdown")
}

// Locks returns the locks for shutdowns, sorted by holder and process ID.
func (b Bus) Locks(ctx context.Context) ([]Lock, error) {
	var all []Lock
	if err := b.call(ctx, manager+".ListInhibitors", &all); err != nil {
		return nil, err
	}
	locks := []Lock{}
	for _, lock := range all {
		if slices.Contains(strings.Split(lock.What, ":"), "shutdown") {
			locks = append(locks, lock)
		}
	}
	slices.SortFunc(locks, func(a, b Lock) int { return cmp.Or(cmp.Compare(a.Who, b.Who), cmp.Compare(a.PID, b.PID)) }) // logind has no order
	return locks, nil
}

// kubegraceWhy is the reason that package logind gives for its locks by default.
const kubegraceWhy = "Pods need time to end before the node shuts down"

// IsKubelets reports whether a lock belongs to a kubelet.
func (l Lock) IsKubelets() bool { return l.Mode == "delay" && l.Who == "kubelet" }

// IsKubegraces reports whether a lock belongs to an agent that uses kubegrace. Other programs than
// kubegrace-node choose their own holder, so the default reason counts too.
func (l Lock) IsKubegraces() bool {
	return l.Mode == "delay" && !l.IsKubelets() && (l.Why == kubegraceWhy || l.Who == "kubegrace" || l.Who == "kubegrace-node")
}
