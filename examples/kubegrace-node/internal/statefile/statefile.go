// Package statefile stores values as JSON in files of the state folder. With the folder "" it stores nothing.
// Errors name the file.
package statefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kubegrace/kubegrace/examples/internal/document"
	"github.com/kubegrace/kubegrace/internal/atomicfile"
)

// Prefix is the prefix of the names of this program's files, by which uninstall finds them.
const Prefix = "kubegrace-node_"

// Load reads a value. It returns the zero value if there is no file.
func Load[T any](dir, name string) (value T, err error) {
	if dir == "" {
		return value, nil
	}
	file := filepath.Join(dir, name)
	text, err := document.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return value, nil
	}
	if err != nil {
		return value, err
	}
	if err := json.Unmarshal(text, &value); err != nil {
		return *new(T), fmt.Errorf("%s: %w", file, err)
	}
	return value, nil
}

// Store replaces a file with a value, atomically. The file gets the mode. Store returns when the file is on the disk.
func Store(dir, name string, mode fs.FileMode, value any) error {
	if dir == "" {
		return nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return atomicfile.WriteWithMode(filepath.Join(dir, name), text, mode)
}

// Remove removes a file. A missing file is no error.
func Remove(dir, name string) error {
	if dir == "" {
		return nil
	}
	if err := os.Remove(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
