package atomicfile

import (
	"errors"
	"fmt"
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
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	temp, err := os.CreateTemp(dir, ".tmp-"+name)
	if err != nil {
		return fmt.Errorf("failed to create a temporary file for %s: %w", path, err)
	}
	if err := fill(temp, data); err != nil {
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
func fill(temp *os.File, data []byte) error {
	_, err := temp.Write(data)
	if err == nil {
		err = temp.Chmod(mode)
	}
	if err == nil {
		err = temp.Sync()
	}
	return errors.Join(err, temp.Close())
}
