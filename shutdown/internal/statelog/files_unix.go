//go:build unix && !solaris && !illumos && !aix

package statelog

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// othersMayWrite are the mode bits that let others write.
const othersMayWrite fs.FileMode = 0o022

// openFile opens a file without following a link or waiting for the other end of a FIFO.
func openFile(path string, flags int) (*os.File, error) {
	return os.OpenFile(path, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
}

// isForeign reports whether a file belongs to neither this user nor root.
func isForeign(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid()
}

// tryLock locks a file without waiting. Closing the file, or the end of the process, unlocks it.
func tryLock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return err
}
