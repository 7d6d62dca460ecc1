//go:build linux

package logind

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

const (
	logindUnit = "systemd-logind.service"

	// jobTimeout bounds the wait for a reload job. The job takes milliseconds; if no
	// result comes within jobTimeout, none will come.
	jobTimeout = time.Second
)

// reload makes logind read its files again, through systemd. If logind's unit has a
// reload (v253 and later, and v252 of some distributions), logind has read the files when
// reload returns. Otherwise it handles the SIGHUP some time later.
func (f *delayFiles) reload(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// go-systemd makes one call without a context when it connects. The connection ends
	// with ctx so that the call does too.
	manager, err := systemd.NewConnection(func() (*dbus.Conn, error) { return connect(ctx, f.options.Address, nil) })
	if err != nil {
		return fmt.Errorf("reload %s: %w", logindUnit, err)
	}
	defer manager.Close()
	if err := reloadUnit(ctx, manager); err != nil {
		return hangUp(ctx, manager, fmt.Errorf("reload %s: %w", logindUnit, err))
	}
	return nil
}

// reloadUnit asks systemd for a reload job and waits until the job ends.
func reloadUnit(ctx context.Context, manager *systemd.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	ended := make(chan string, 1) // buffered so that go-systemd never blocks on it
	if _, err := manager.ReloadUnitContext(ctx, logindUnit, "replace", ended); err != nil {
		return err
	}
	select {
	case result := <-ended:
		if result != "done" {
			return fmt.Errorf("the job ended with %q", result)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hangUp sends SIGHUP to logind. reloadErr is the reason why the reload failed; it is
// joined to the error if this fails too. The kubelet signals all processes of the unit;
// only the main process reads the files, so that one comes first.
func hangUp(ctx context.Context, manager *systemd.Conn, reloadErr error) error {
	errs := []error{reloadErr}
	// systemd.All is for a systemd that does not know the main process.
	for _, target := range []systemd.Who{systemd.Main, systemd.All} {
		err := manager.KillUnitWithTarget(ctx, logindUnit, target, int32(syscall.SIGHUP))
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("send SIGHUP to %s (%s): %w", logindUnit, target, err))
	}
	return errors.Join(errs...)
}
