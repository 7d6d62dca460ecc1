package units

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/statefile"
)

// File is the name of the record's file in the runDir of [New].
const File = statefile.Prefix + "stopped_units.json"

// Record says which units are stopped, and for how long.
type Record struct {
	// Drained says that kubegrace-node drain was called: the units stay stopped until the drain is withdrawn,
	// even if a shutdown is cancelled.
	Drained bool `json:"drained"`
	// Units are the stopped units that ran before, and so have to be started again.
	Units []string `json:"units"`
}

// Stopped returns the record of this agent, or of a previous one of the same boot; nil if there is none. The
// caller must not change it.
func (k *Keeper) Stopped() *Record {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.record
}

// Drained reports whether the record says that the node is drained.
func (k *Keeper) Drained() bool {
	record := k.Stopped()
	return record != nil && record.Drained
}

// SetDrained records that the node is drained, or no longer. It stops and starts no unit.
func (k *Keeper) SetDrained(drained bool) error {
	k.changing.Lock()
	defer k.changing.Unlock()
	return k.store(&Record{Drained: drained, Units: k.stoppedUnits()})
}

// stoppedUnits returns a copy of the record's units, to which the caller may append; nil: there is no record.
func (k *Keeper) stoppedUnits() []string {
	if record := k.Stopped(); record != nil {
		return append([]string(nil), record.Units...)
	}
	return nil
}

// store replaces the record, or removes it if it is nil. It returns when the file is written. If that fails,
// the record in memory is the new one all the same.
func (k *Keeper) store(record *Record) (err error) {
	k.mu.Lock()
	k.record = record
	k.mu.Unlock()
	if record == nil {
		err = statefile.Remove(k.runDir, File)
	} else {
		err = statefile.Store(k.runDir, File, record)
	}
	if err != nil {
		return fmt.Errorf("failed to record which units are stopped: %w", err)
	}
	return nil
}

// dropInName returns the path of a unit's drop-in, relative to /run.
func dropInName(unit string) string {
	return filepath.Join("systemd/system", unit+".d", "50-kubegrace-node-stopped.conf")
}

// dropIn returns the path at which the agent writes a unit's drop-in.
func (k *Keeper) dropIn(unit string) string { return filepath.Join(k.runDir, dropInName(unit)) }

// block writes the drop-ins that prevent the units from starting. The condition of a drop-in is that its own
// file does not exist. So its removal suffices to let the unit start, even if systemd has not reloaded its
// files.
func (k *Keeper) block(units []string) error {
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

// unblock removes the drop-ins, and their folders if these are empty then.
func (k *Keeper) unblock(units []string) error {
	var errs []error
	for _, unit := range units {
		if err := os.Remove(k.dropIn(unit)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		_ = os.Remove(filepath.Dir(k.dropIn(unit))) // fails if it is not empty
	}
	return errors.Join(errs...)
}
