//go:build unix

package store

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// hasOwners reports whether the mode and the owner of a file mean something.
const hasOwners = true

// openWithoutWaiting opens a file. It does not follow a link and does not wait for the writer of
// a FIFO.
func openWithoutWaiting(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// openLockFile opens the lock file or creates it. On a read-only file system an existing file can be
// locked too.
func openLockFile(path string) (*os.File, error) {
	const plain = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|plain, 0o600)
	if errors.Is(err, syscall.EROFS) {
		if readable, e := os.OpenFile(path, os.O_RDONLY|plain, 0); e == nil {
			return readable, nil
		}
	}
	return f, err
}

// isForeign reports whether a file belongs to a user other than this one and root.
func isForeign(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid()
}
