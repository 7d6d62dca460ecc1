//go:build !windows

package atomicfile

import (
	"errors"
	"os"
	"syscall"
)

// syncDir brings the names in a directory to the disk.
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

// cannotSync tells whether a file system has no sync of directories, as some
// network and FUSE ones do: what it answers is then no failure of the write.
func cannotSync(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL)
}
