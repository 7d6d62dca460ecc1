//go:build linux

package logind

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

const (
	logindUnit = "systemd-logind.service"
	killUnit   = "org.freedesktop.systemd1.Manager.KillUnit"
)

// reload makes logind read its files again, some time later: systemd sends it SIGHUP, as it does for
// the kubelet. The kubelet signals all processes of the unit; only the main process reads the files,
// so that one comes first. All is for a systemd that does not know the main process.
func (c *conn) reload(ctx context.Context) error {
	systemd := c.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1")
	var errs []error
	for _, target := range []string{"main", "all"} {
		err := systemd.CallWithContext(ctx, killUnit, 0, logindUnit, target, int32(syscall.SIGHUP)).Err
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("send SIGHUP to %s (%s): %w", logindUnit, target, err))
	}
	return errors.Join(errs...)
}
