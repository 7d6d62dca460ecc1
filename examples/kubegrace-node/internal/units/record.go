package units

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/statefile"
)

// File is the name of the file in the folder of [New].
const File = statefile.Prefix + "stopped_units.json"

// Record says what is stopped.
type Record struct {
	// Drained says that the units stay stopped until the drain is taken back, also if a shutdown is called off.
	Drained bool `json:"drained"`
	// Units are those that ran.
	Units []string `json:"units"`
}

// Stopped returns what this agent or a previous one of the same boot has stopped, nil if nothing.
func (k *Keeper) Stopped() *Record {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.record
}

// Drained reports whether units stay stopped until SetDrained(false).
func (k *Keeper) Drained() bool {
	record := k.Stopped()
	return record != nil && record.Drained
}

// SetDrained records whether the units that are stopped, now or later, stay so when a shutdown is called off.
func (k *Keeper) SetDrained(drained bool) error {
	k.changing.Lock()
	defer k.changing.Unlock()
	return k.store(&Record{Drained: drained, Units: k.stoppedUnits()})
}

// stoppedUnits returns a copy of the units of the record.
func (k *Keeper) stoppedUnits() []string {
	if record := k.Stopped(); record != nil {
		return append([]string(nil), record.Units...)
	}
	return nil
}

// store replaces the record, and returns when it is on the disk. nil removes it.
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

// dropInName returns the path below /run of the drop-in that keeps a unit from starting.
func dropInName(unit string) string {
	return filepath.Join("systemd/system", unit+".d", "50-kubegrace-node-stopped.conf")
}

func (k *Keeper) dropIn(unit string) string { return filepath.Join(k.runDir, dropInName(unit)) }

// block writes the drop-ins. Their condition is not met while they are there: a drop-in that was
// removed keeps no unit from starting, even if systemd has not read its files again.
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

// unblock removes the drop-ins, and their folders if nothing else is in them.
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
