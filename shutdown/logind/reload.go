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
	// jobTimeout bounds the wait for a reload job: it ends within milliseconds or
	// its end is not told to us.
	jobTimeout = time.Second
)

// reload makes logind read its files again, through systemd. Where the unit has a
// reload (v253 and later, and some distributions' v252) the files have been read
// when it returns; a SIGHUP is handled some time later.
func (s *Source) reload(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// go-systemd asks one question without a context when it connects: its
	// connections end with ctx.
	manager, err := systemd.NewConnection(func() (*dbus.Conn, error) { return connect(ctx, s.options.Address, nil) })
	if err != nil {
		return fmt.Errorf("reload %s: %w", logindUnit, err)
	}
	defer manager.Close()
	if err := reloadUnit(ctx, manager); err != nil {
		return hangUp(ctx, manager, err)
	}
	return nil
}

// reloadUnit asks systemd for a reload job and waits for its end.
func reloadUnit(ctx context.Context, manager *systemd.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	ended := make(chan string, 1) // go-systemd must never wait for us
	if _, err := manager.ReloadUnitContext(ctx, logindUnit, "replace", ended); err != nil {
		return fmt.Errorf("reload %s: %w", logindUnit, err)
	}
	select {
	case result := <-ended:
		if result != "done" {
			return fmt.Errorf("reload %s: the job ended with %q", logindUnit, result)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("reload %s: %w", logindUnit, context.Cause(ctx))
	}
}

// hangUp sends SIGHUP to logind. The kubelet sends it to all processes of the
// unit; its main process is the one that reads the files. before is why there
// was no reload, and is told when this fails too.
func hangUp(ctx context.Context, manager *systemd.Conn, before error) error {
	errs := []error{before}
	// "all" is for a systemd that does not know the main process.
	for _, target := range []systemd.Who{systemd.Main, systemd.All} {
		err := manager.KillUnitWithTarget(ctx, logindUnit, target, int32(syscall.SIGHUP))
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("send SIGHUP to %s (%s): %w", logindUnit, target, err))
	}
	return errors.Join(errs...)
}
