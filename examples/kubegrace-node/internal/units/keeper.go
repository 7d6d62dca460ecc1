package units

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/statefile"
)

// startTimeout bounds the start of one unit.
const startTimeout = 90 * time.Second

// Keeper stops units and starts them again. Make one with [New].
type Keeper struct {
	runDir string
	units  []string
	dial   func(context.Context) (*dbus.Conn, error)

	changing sync.Mutex    // held for the whole of a call that changes units, so that calls do not mix
	mu       sync.Mutex    // guards stopped; never held while anything waits
	stopped  *StoppedUnits // as in the file; nil: nothing is stopped
}

// New returns a Keeper of units, which may be none. runDir is the machine's /run; with "" the Keeper writes no
// file. If the file of a previous agent cannot be read, New returns an error and a usable Keeper.
func New(runDir string, units []string) (*Keeper, error) {
	k := &Keeper{
		runDir: runDir, units: units,
		dial: func(ctx context.Context) (*dbus.Conn, error) { return dbus.ConnectSystemBus(dbus.WithContext(ctx)) },
	}
	var err error
	if k.stopped, err = statefile.Load[*StoppedUnits](runDir, File); err != nil {
		return k, fmt.Errorf("the file of stopped units cannot be used: %w", err)
	}
	return k, nil
}

// Units returns the units that Stop stops.
func (k *Keeper) Units() []string { return k.units }

// connect connects to systemd. The connection breaks when ctx ends.
func (k *Keeper) connect(ctx context.Context) (*systemd.Conn, error) {
	conn, err := systemd.NewConnection(func() (*dbus.Conn, error) { return k.dial(ctx) })
	if err != nil {
		return nil, fmt.Errorf("failed to connect to systemd: %w", err)
	}
	return conn, nil
}

// Stop stops the units that run, prevents all units from starting, and returns when they have stopped. It may
// be called again, also by a restarted agent. If one step fails, the others are still done, so that as little
// as possible starts pods again. Without a connection to systemd it only writes the file, and returns an error.
func (k *Keeper) Stop(ctx context.Context) error {
	k.changing.Lock()
	defer k.changing.Unlock()
	stopped := &StoppedUnits{Drained: k.IsNodeDrained(), Units: k.stoppedUnits()}
	conn, err := k.connect(ctx)
	if err != nil {
		return errors.Join(err, k.store(stopped))
	}
	defer conn.Close()
	units, err := conn.ListUnitsByNamesContext(ctx, k.units)
	running := runningOf(units)
	for _, unit := range running {
		if !slices.Contains(stopped.Units, unit) {
			stopped.Units = append(stopped.Units, unit)
		}
	}
	errs := []error{err}
	errs = append(errs, k.store(stopped)) // first: if this agent dies from here on, the next one knows which units to start again
	errs = append(errs, k.writeDropIns(k.units), conn.ReloadContext(ctx))
	for _, unit := range running {
		errs = append(errs, stopUnit(ctx, conn, unit))
	}
	return errors.Join(errs...)
}

// runningOf returns the names of the units that run.
func runningOf(units []systemd.UnitStatus) (names []string) {
	for _, unit := range units {
		if slices.Contains([]string{"active", "activating", "reloading"}, unit.ActiveState) {
			names = append(names, unit.Name)
		}
	}
	return names
}

// listUnits asks systemd for the states of the units. Without units it asks nothing.
func (k *Keeper) listUnits(ctx context.Context) ([]systemd.UnitStatus, error) {
	if len(k.units) == 0 {
		return nil, nil
	}
	conn, err := k.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ListUnitsByNamesContext(ctx, k.units)
}

// CheckStopped returns an error that names the units that run, or says why systemd cannot be asked. Nil: no unit runs.
func (k *Keeper) CheckStopped(ctx context.Context) error {
	units, err := k.listUnits(ctx)
	if running := runningOf(units); len(running) > 0 {
		err = errors.Join(err, fmt.Errorf("not stopped: %s", strings.Join(running, ", ")))
	}
	return err
}

// CheckExist returns an error if systemd does not know one of the units, for example because its name is misspelt.
// The unit that the user meant would then not be stopped.
func (k *Keeper) CheckExist(ctx context.Context) error {
	units, err := k.listUnits(ctx)
	errs := []error{err}
	for _, unit := range units {
		if unit.LoadState == "not-found" {
			errs = append(errs, fmt.Errorf("%s: systemd has no such unit, so nothing stops what starts the pods", unit.Name))
		}
	}
	return errors.Join(errs...)
}

// stopUnit stops a unit and waits for its end. If ctx has a deadline, it kills the unit's main process halfway
// there, so that the unit ends in time.
func stopUnit(ctx context.Context, conn *systemd.Conn, unit string) error {
	jobResult := make(chan string, 1)
	if _, err := conn.StopUnitContext(ctx, unit, "replace", jobResult); err != nil {
		return fmt.Errorf("failed to stop %s: %w", unit, err)
	}
	var halfTime <-chan time.Time // never fires without a deadline
	if deadline, ok := ctx.Deadline(); ok {
		halfTime = time.After(time.Until(deadline) / 2)
	}
	for {
		select {
		case result := <-jobResult:
			if result != "done" {
				return fmt.Errorf("failed to stop %s: %s", unit, result)
			}
			return nil
		case <-halfTime:
			if err := conn.KillUnitWithTarget(ctx, unit, systemd.Main, int32(syscall.SIGKILL)); err != nil {
				return fmt.Errorf("%s does not stop, and cannot be killed: %w", unit, err)
			}
		case <-ctx.Done():
			return fmt.Errorf("%s has not stopped: %w", unit, context.Cause(ctx))
		}
	}
}

// Start undoes Stop, also that of a previous agent: it removes the drop-ins that prevent units from starting, starts the
// units that ran before Stop, and removes the file that names them. If nothing is stopped, it does nothing. If it fails, the
// file stays, and Start can be called again.
func (k *Keeper) Start(ctx context.Context) error {
	k.changing.Lock()
	defer k.changing.Unlock()
	stopped := k.Stopped()
	if stopped == nil {
		return nil
	}
	dropIns := k.dropIns()
	if len(dropIns) == 0 && len(stopped.Units) == 0 { // a drain without --stop-unit: systemd is not needed
		return k.store(nil)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	conn, err := k.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := errors.Join(removeDropIns(dropIns), conn.ReloadContext(ctx)); err != nil {
		return fmt.Errorf("failed to let units start again: %w", err)
	}
	var errs []error
	for _, unit := range stopped.Units {
		errs = append(errs, startUnit(ctx, conn, unit))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return k.store(nil)
}

// startUnit starts a unit and waits until it runs. A unit that no longer exists is no error.
func startUnit(ctx context.Context, conn *systemd.Conn, unit string) error {
	jobResult := make(chan string, 1)
	_, err := conn.StartUnitContext(ctx, unit, "replace", jobResult)
	var refused dbus.Error
	if errors.As(err, &refused) && refused.Name == "org.freedesktop.systemd1.NoSuchUnit" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("failed to start %s again: %w", unit, err)
	}
	select {
	case result := <-jobResult:
		if result != "done" {
			return fmt.Errorf("failed to start %s again: %s", unit, result)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s has not started again: %w", unit, context.Cause(ctx))
	}
}
