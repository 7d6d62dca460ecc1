//go:build unix && !solaris && !illumos && !aix

package store

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks a file without waiting. The lock ends when the file is closed, or with the
// process.
func tryLock(f *os.File) error {
	connection, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var locked error
	if err := connection.Control(func(fd uintptr) { locked = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB) }); err != nil {
		return err
	}
	if errors.Is(locked, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return locked
}
