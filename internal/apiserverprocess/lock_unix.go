//go:build unix

package apiserverprocess

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock waits for the exclusive lock of a file. The lock is released when the file is
// closed or the process dies.
func lock(file *os.File) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
