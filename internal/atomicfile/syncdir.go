//go:build !windows

package atomicfile

import (
	"errors"
	"os"
	"syscall"
)

// SyncDir writes the names in a directory to the disk, so that what was created, renamed or
// removed there survives a power cut. It does nothing where the file system cannot do that, and
// on Windows.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cannotSync(err) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// cannotSync reports whether err means that the file system cannot sync directories, as some
// network and FUSE file systems cannot. That is not a failure of the write.
func cannotSync(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL)
}
