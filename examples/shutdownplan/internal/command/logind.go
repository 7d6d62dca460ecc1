package command

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/godbus/dbus/v5"
)

// logindTimeout bounds the whole request to systemd-logind.
const logindTimeout = 5 * time.Second

// logindLimit asks systemd-logind of this host how long inhibitor locks may delay a shutdown
// (InhibitDelayMaxSec). It returns -1 if they may not delay it at all, and math.MaxInt64 if
// they may delay it without a limit. It changes nothing on the host.
func logindLimit(ctx context.Context) (limit time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, logindTimeout)
	defer cancel()
	bus, err := dbus.ConnectSystemBus(dbus.WithContext(ctx))
	if err != nil {
		return 0, fmt.Errorf("failed to reach the system bus: %w", err)
	}
	defer bus.Close() //nolint:errcheck // the reply has been read
	var value dbus.Variant
	err = bus.Object("org.freedesktop.login1", "/org/freedesktop/login1").
		CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, "org.freedesktop.login1.Manager", "InhibitDelayMaxUSec").
		Store(&value)
	if err != nil {
		return 0, fmt.Errorf("failed to ask systemd-logind: %w", err)
	}
	microseconds, ok := value.Value().(uint64)
	switch {
	case !ok:
		return 0, fmt.Errorf("systemd-logind answers with %s for a number", value)
	case microseconds == 0:
		return -1, nil
	case microseconds > uint64(math.MaxInt64/time.Microsecond):
		return math.MaxInt64, nil
	}
	return time.Duration(microseconds) * time.Microsecond, nil
}
