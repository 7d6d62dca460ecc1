//go:build !windows

package atomicfile

import (
	"errors"
	"os"
	"syscall"
)

// SyncDir syncs a directory, so that files that were created, renamed or removed in it survive a power
// failure. It does nothing on Windows, and on file systems that cannot sync directories.
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

// cannotSync reports whether err means that the file system cannot sync directories. Some network and FUSE file
// systems cannot.
func cannotSync(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL)
}
