package units

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/statefile"
)

// File is the name of the file with the [StoppedUnits], in the runDir of [New].
const File = statefile.Prefix + "stopped_units.json"

// StoppedUnits says which units are stopped, and for how long.
type StoppedUnits struct {
	// Drained says that kubegrace-node drain was called: the units stay stopped until the drain is withdrawn,
	// even if a shutdown is cancelled.
	Drained bool `json:"drained"`
	// Units are the stopped units that ran before, and so have to be started again.
	Units []string `json:"units"`
}

// Stopped returns what this agent, or a previous one of the same boot, has stopped; nil: nothing. The caller must not change
// it.
func (k *Keeper) Stopped() *StoppedUnits {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stopped
}

// IsNodeDrained reports whether kubegrace-node drain was called, and not withdrawn since.
func (k *Keeper) IsNodeDrained() bool {
	stopped := k.Stopped()
	return stopped != nil && stopped.Drained
}

// SetNodeDrained stores what IsNodeDrained returns, for later agents too. It stops and starts no unit.
func (k *Keeper) SetNodeDrained(drained bool) error {
	k.changing.Lock()
	defer k.changing.Unlock()
	return k.store(&StoppedUnits{Drained: drained, Units: k.stoppedUnits()})
}

// stoppedUnits returns a copy of the list of stopped units, to which the caller may append; nil: there are none.
func (k *Keeper) stoppedUnits() []string {
	if stopped := k.Stopped(); stopped != nil {
		return append([]string(nil), stopped.Units...)
	}
	return nil
}

// store sets what is stopped, and writes it to the file, or removes the file for nil. If the file cannot be changed, the
// Keeper has the new value all the same.
func (k *Keeper) store(stopped *StoppedUnits) (err error) {
	k.mu.Lock()
	k.stopped = stopped
	k.mu.Unlock()
	if stopped == nil {
		err = statefile.Remove(k.runDir, File)
	} else {
		err = statefile.Store(k.runDir, File, 0o644, stopped)
	}
	if err != nil {
		return fmt.Errorf("failed to store which units are stopped: %w", err)
	}
	return nil
}

// dropInName returns the path of a unit's drop-in, relative to /run.
func dropInName(unit string) string {
	return filepath.Join("systemd/system", unit+".d", "50-kubegrace-node-stopped.conf")
}

// dropIn returns the path at which the agent writes a unit's drop-in.
func (k *Keeper) dropIn(unit string) string { return filepath.Join(k.runDir, dropInName(unit)) }

// writeDropIns writes the drop-ins that prevent the units from starting. The condition of a drop-in is that its own
// file does not exist. So its removal suffices to let the unit start, even if systemd has not reloaded its
// files.
func (k *Keeper) writeDropIns(units []string) error {
	errs := make([]error, 0, len(units))
	for _, unit := range units {
		path := k.dropIn(unit)
		text := "# kubegrace-node has stopped this unit, and starts it again.\n[Unit]\nConditionPathExists=!/run/" + dropInName(unit) + "\n"
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o644) //nolint:gosec // systemd's files can be read by all
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// dropIns returns the paths of all drop-ins that prevent units from starting.
func (k *Keeper) dropIns() (paths []string) {
	names, _ := fs.Glob(os.DirFS(k.runDir), dropInName("*")) // fails only for an invalid pattern
	for _, name := range names {
		paths = append(paths, filepath.Join(k.runDir, name))
	}
	return paths
}

// removeDropIns removes the drop-ins at these paths, and the folders that are then empty.
func removeDropIns(paths []string) error {
	var errs []error
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		_ = os.Remove(filepath.Dir(path)) // fails if it is not empty
	}
	return errors.Join(errs...)
}
