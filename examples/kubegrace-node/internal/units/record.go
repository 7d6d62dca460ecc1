package units

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/statefile"
)

// File is the name of the file in the state folder.
const File = statefile.Prefix + "stopped_units.json"

// Reason is why units are stopped.
type Reason string

// The reasons. Drain counts more: a shutdown that is called off does not end it.
const (
	Shutdown Reason = "shutdown" // the units are started again when it is called off
	Drain    Reason = "drain"    // the units stay stopped until the drain is taken back
)

// Record says which units are stopped.
type Record struct {
	Boot   string   `json:"boot"` // the boot ID: a boot starts the units by itself
	Reason Reason   `json:"reason"`
	Units  []string `json:"units"` // those that ran; none: they did not run
}

// Stopped returns what this agent or a previous one of the same boot has stopped, nil if nothing.
func (k *Keeper) Stopped() *Record {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.record
}

// load reads the record of a previous agent. Without a usable file the drop-ins count.
func (k *Keeper) load() error {
	record, err := statefile.Load[*Record](k.stateDir, File)
	switch {
	case err == nil && record != nil && record.Boot == k.boot:
		k.record = record
		return nil
	case err == nil && record != nil: // of another boot
		err = k.forget()
	}
	dropIns, _ := filepath.Glob(k.dropIn("*")) // the pattern is right
	for _, dropIn := range dropIns {
		if k.record == nil {
			k.record = &Record{Boot: k.boot, Reason: Shutdown}
		}
		k.record.Units = append(k.record.Units, strings.TrimSuffix(filepath.Base(filepath.Dir(dropIn)), ".d"))
	}
	return err
}

// store writes the record, and returns when it is on the disk.
func (k *Keeper) store(record *Record) error {
	k.set(record)
	if err := statefile.Store(k.stateDir, File, record); err != nil {
		return fmt.Errorf("failed to record that units are stopped: %w", err)
	}
	return nil
}

// forget removes the record.
func (k *Keeper) forget() error {
	k.set(nil)
	if err := statefile.Remove(k.stateDir, File); err != nil {
		return fmt.Errorf("failed to remove the record of stopped units: %w", err)
	}
	return nil
}

func (k *Keeper) set(record *Record) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.record = record
}

// dropIn returns the path of the drop-in that keeps a unit from starting.
func (k *Keeper) dropIn(unit string) string {
	return filepath.Join(k.runtimeDir, unit+".d", "50-kubegrace-node-stopped.conf")
}

// block writes the drop-ins. Their condition is not met while they are there: a drop-in that was
// removed keeps no unit from starting, even if systemd has not read its files again.
func (k *Keeper) block(units []string) error {
	errs := make([]error, 0, len(units))
	for _, unit := range units {
		path := k.dropIn(unit)
		text := "# kubegrace-node has stopped this unit, and starts it again.\n[Unit]\nConditionPathExists=!" + path + "\n"
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

// bootID returns the ID of this boot, "" off Linux.
func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // missing off Linux
	return strings.TrimSpace(string(text))
}

// joined returns the units of a record and more, each once.
func joined(record *Record, more []string) []string {
	var units []string
	if record != nil {
		units = append(units, record.Units...)
	}
	for _, unit := range more {
		if !slices.Contains(units, unit) {
			units = append(units, unit)
		}
	}
	return units
}
