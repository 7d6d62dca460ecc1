package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// mode lets everybody read the file and only the agent write it, as the kubelet
// has it for its state.
const mode = 0o644

// Write makes data the content of the file at path, which need not exist; its
// directory must. The file's mode becomes 0644 whatever the umask is. The data
// and its name are on the disk when Write returns nil.
func Write(path string, data []byte) error {
	return WriteFrom(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// WriteFrom is [Write] for a content that need not be in memory as a whole: content writes
// it, in as many pieces as it likes. Its error leaves the old file as it is.
func WriteFrom(path string, content func(io.Writer) error) error {
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	temp, err := os.CreateTemp(dir, ".tmp-"+name)
	if err != nil {
		return fmt.Errorf("failed to create a temporary file for %s: %w", path, err)
	}
	if err := fill(temp, content); err != nil {
		return fmt.Errorf("failed to write %s: %w", path, errors.Join(err, os.Remove(temp.Name())))
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return fmt.Errorf("failed to replace %s: %w", path, errors.Join(err, os.Remove(temp.Name())))
	}
	if err := syncDir(dir); err != nil {
		return fmt.Errorf("failed to sync the directory of %s: %w", path, err)
	}
	return nil
}

// fill writes the temporary file, brings it to the disk and closes it.
func fill(temp *os.File, content func(io.Writer) error) error {
	err := content(temp)
	if err == nil {
		err = temp.Chmod(mode)
	}
	if err == nil {
		err = temp.Sync()
	}
	return errors.Join(err, temp.Close())
}
