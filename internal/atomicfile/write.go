package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// kubeletsMode is the mode of the kubelet's state files.
const kubeletsMode = 0o644

// Write is WriteWithMode with the mode of the kubelet's state files, 0644.
func Write(path string, data []byte) error { return WriteWithMode(path, data, kubeletsMode) }

// WriteWithMode replaces the content of the file at path with data, or creates the file. Its directory must exist. The file
// gets the mode, regardless of the umask. When WriteWithMode returns nil, file and directory are synced, so that a power
// failure cannot bring back the old content.
func WriteWithMode(path string, data []byte, mode fs.FileMode) error {
	err := Replace(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	if err := SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("failed to sync the directory of %s: %w", path, err)
	}
	return nil
}

// Replace replaces or creates a file with the data that the function content writes, in any number of pieces. The file gets
// the mode, regardless of the umask. If content returns an error, the old file stays. When Replace returns nil, the new file is synced, but
// its directory is not: a power failure may bring back the old file, unless [SyncDir] was called.
func Replace(path string, mode fs.FileMode, content func(io.Writer) error) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".tmp-"+filepath.Base(path))
	if err != nil {
		return fmt.Errorf("failed to create a temporary file for %s: %w", path, err)
	}
	if err := writeAndClose(temp, mode, content); err != nil {
		return fmt.Errorf("failed to write %s: %w", path, errors.Join(err, os.Remove(temp.Name())))
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return fmt.Errorf("failed to replace %s: %w", path, errors.Join(err, os.Remove(temp.Name())))
	}
	return nil
}

// writeAndClose writes, syncs and closes the temporary file. It closes the file even after an error.
func writeAndClose(temp *os.File, mode fs.FileMode, content func(io.Writer) error) error {
	err := content(temp)
	if err == nil {
		err = temp.Chmod(mode)
	}
	if err == nil {
		err = temp.Sync()
	}
	return errors.Join(err, temp.Close())
}
