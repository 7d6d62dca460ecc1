package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	login1        = "org.freedesktop.login1"
	login1Manager = login1 + ".Manager"
)

// errNotRunning is returned while nobody owns logind's bus name.
var errNotRunning = errors.New("systemd-logind does not run")

// Lock is an inhibitor for shutdowns, as logind lists it.
type Lock struct {
	What string `json:"what"`
	Who  string `json:"who"`
	Why  string `json:"why"`
	Mode string `json:"mode"`
	UID  uint32 `json:"uid"`
	PID  uint32 `json:"pid"`
}

// bus is a connection to the system bus. Its calls start no service.
type bus struct{ conn *dbus.Conn }

// connect connects to the bus at an address; "" means the system bus. The caller closes it.
func connect(ctx context.Context, address string) (bus, error) {
	connect := dbus.ConnectSystemBus
	if address != "" {
		connect = func(opts ...dbus.ConnOption) (*dbus.Conn, error) { return dbus.Connect(address, opts...) }
	}
	conn, err := connect(dbus.WithContext(ctx))
	if err != nil {
		return bus{}, fmt.Errorf("failed to reach the system bus: %w", err)
	}
	return bus{conn}, nil
}

// call calls a method of logind and stores its reply.
func (b bus) call(ctx context.Context, method string, reply any, args ...any) error {
	err := b.conn.Object(login1, "/org/freedesktop/login1").CallWithContext(ctx, method, dbus.FlagNoAutoStart, args...).Store(reply)
	var refused dbus.Error
	if errors.As(err, &refused) && (refused.Name == "org.freedesktop.DBus.Error.NameHasNoOwner" || refused.Name == "org.freedesktop.DBus.Error.ServiceUnknown") {
		return errNotRunning
	}
	if err != nil {
		return fmt.Errorf("failed to ask systemd-logind: %w", err)
	}
	return nil
}

// property reads a property of logind's manager.
func property[T any](ctx context.Context, b bus, name string) (value T, err error) {
	var variant dbus.Variant
	if err := b.call(ctx, "org.freedesktop.DBus.Properties.Get", &variant, login1Manager, name); err != nil {
		return value, err
	}
	value, ok := variant.Value().(T)
	if !ok {
		return value, fmt.Errorf("systemd-logind answers with %s for %s", variant, name)
	}
	return value, nil
}

// limit reads how long locks may delay a shutdown.
func (b bus) limit(ctx context.Context) (time.Duration, error) {
	microseconds, err := property[uint64](ctx, b, "InhibitDelayMaxUSec")
	if microseconds > uint64(math.MaxInt64/time.Microsecond) {
		return Unlimited, err
	}
	return time.Duration(microseconds) * time.Microsecond, err
}

// locks lists the locks that are about shutdowns.
func (b bus) locks(ctx context.Context) ([]Lock, error) {
	var all []Lock
	if err := b.call(ctx, login1Manager+".ListInhibitors", &all); err != nil {
		return nil, err
	}
	locks := []Lock{}
	for _, lock := range all {
		if isAboutShutdown(lock.What) {
			locks = append(locks, lock)
		}
	}
	slices.SortFunc(locks, func(a, b Lock) int { return cmp.Or(cmp.Compare(a.Who, b.Who), cmp.Compare(a.PID, b.PID)) }) // logind has no order
	return locks, nil
}
