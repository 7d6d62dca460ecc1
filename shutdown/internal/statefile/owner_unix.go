//go:build unix

package statefile

import (
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

// foreign tells whether a file belongs to somebody else than this user and root.
func foreign(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid()
}
