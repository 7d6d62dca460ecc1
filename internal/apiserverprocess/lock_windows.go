package apiserverprocess

import (
	"os"

	"golang.org/x/sys/windows"
)

// lock waits until no other process has the lock of a file. It is let go when the
// file is closed, or its process dies.
func lock(file *os.File) error {
	return windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, &windows.Overlapped{})
}
