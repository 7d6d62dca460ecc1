//go:build unix

package statefile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// hasOwners tells whether modes and owners of files mean something.
const hasOwners = true

// openWithoutWaiting opens a file, but follows no link and does not wait for the writer of
// a FIFO.
func openWithoutWaiting(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// openLock opens the file that is locked, or makes it. On a file system that is read-only
// the one that is there can be locked all the same.
func openLock(path string) (*os.File, error) {
	const plain = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|plain, 0o600)
	if errors.Is(err, syscall.EROFS) {
		if readable, e := os.OpenFile(path, os.O_RDONLY|plain, 0); e == nil {
			return readable, nil
		}
	}
	return f, err
}

// foreign tells whether a file belongs to somebody else than this user and root.
func isForeign(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid()
}
