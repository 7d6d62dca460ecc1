//go:build !windows

package atomicfile

import (
	"errors"
	"os"
	"syscall"
)

// syncDir writes the entries of a directory to the disk, so that a rename survives a power
// cut.
func syncDir(dir string) error {
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
