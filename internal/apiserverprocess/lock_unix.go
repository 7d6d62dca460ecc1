//go:build unix

package apiserverprocess

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock waits until no other process has the lock of a file. It is let go when the
// file is closed, or its process dies.
func lock(file *os.File) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
