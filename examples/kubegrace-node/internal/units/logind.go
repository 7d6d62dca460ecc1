package units

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/godbus/dbus/v5"
)

const (
	login1     = "org.freedesktop.login1"
	login1Path = dbus.ObjectPath("/org/freedesktop/login1")
	// kubelet is how a kubelet calls itself in the list of inhibitors.
	kubelet = "kubelet"
)

// ErrKubeletHolds says that a kubelet drains this machine itself.
var ErrKubeletHolds = errors.New("a kubelet holds a shutdown lock of its own: it has a shutdownGracePeriod, and both would stop the same pods " +
	"at the same moment; set its shutdownGracePeriod to 0 and start it again")

// HostGoesDown asks logind whether this machine prepares for a shutdown. A machine without logind
// does not.
func (k *Keeper) HostGoesDown(ctx context.Context) (bool, error) {
	var preparing bool
	err := k.login1(ctx, func(object dbus.BusObject) error {
		var value dbus.Variant
		err := object.CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, login1+".Manager", "PreparingForShutdown").Store(&value)
		preparing, _ = value.Value().(bool)
		return err
	})
	var refused dbus.Error
	if errors.As(err, &refused) && slices.Contains([]string{"org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner"}, refused.Name) {
		return false, nil
	}
	return preparing, err
}

// CheckKubelet returns ErrKubeletHolds if a kubelet is among logind's inhibitors of shutdowns.
func (k *Keeper) CheckKubelet(ctx context.Context) error {
	var inhibitors []struct {
		What, Who, Why, Mode string
		UID, PID             uint32
	}
	err := k.login1(ctx, func(object dbus.BusObject) error {
		return object.CallWithContext(ctx, login1+".Manager.ListInhibitors", 0).Store(&inhibitors)
	})
	if err != nil {
		return fmt.Errorf("failed to ask logind whether a kubelet holds a lock: %w", err)
	}
	for _, i := range inhibitors {
		if i.Who == kubelet && i.Mode == "delay" {
			return ErrKubeletHolds
		}
	}
	return nil
}

// login1 calls a function with logind's object.
func (k *Keeper) login1(ctx context.Context, call func(dbus.BusObject) error) (err error) {
	conn, err := k.dial(ctx)
	if err != nil {
		return fmt.Errorf("failed to connect to the bus: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return call(conn.Object(login1, login1Path))
}
