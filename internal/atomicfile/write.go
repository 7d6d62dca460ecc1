package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// mode is that of the kubelet's state files: everybody may read them, and only the owner
// may write them.
const mode = 0o644

// Write replaces the content of the file at path by data. The file need not exist, but its
// directory must. The mode of the file becomes 0644, whatever the umask is. When Write
// returns nil, the data and the name are on the disk.
func Write(path string, data []byte) error {
	err := Replace(path, func(w io.Writer) error {
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

// Replace is [Write] for data that is not in memory as a whole and for a caller who does not wait
// for the sync of the directory. It calls content, which writes the data in any number of pieces.
// If content returns an error, the old file stays. When Replace returns nil, the data is on the
// disk and every process finds it; until [SyncDir] a power cut may bring back the old file.
func Replace(path string, content func(io.Writer) error) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".tmp-"+filepath.Base(path))
	if err != nil {
		return fmt.Errorf("failed to create a temporary file for %s: %w", path, err)
	}
	if err := writeAndClose(temp, content); err != nil {
		return fmt.Errorf("failed to write %s: %w", path, errors.Join(err, os.Remove(temp.Name())))
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return fmt.Errorf("failed to replace %s: %w", path, errors.Join(err, os.Remove(temp.Name())))
	}
	return nil
}

// writeAndClose has content write the temporary file, sets the file's mode, syncs the file
// to the disk and closes it. The file is closed even if a step before that fails.
func writeAndClose(temp *os.File, content func(io.Writer) error) error {
	err := content(temp)
	if err == nil {
		err = temp.Chmod(mode)
	}
	if err == nil {
		err = temp.Sync()
	}
	return errors.Join(err, temp.Close())
}
