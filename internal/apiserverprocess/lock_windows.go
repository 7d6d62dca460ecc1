package apiserverprocess

import (
	"os"

	"golang.org/x/sys/windows"
)

// lock waits for the exclusive lock of a file. The lock is released when the file is
// closed or the process dies.
func lock(file *os.File) error {
	const reserved, lowBytes, highBytes = 0, 1, 0 // the first byte of the file
	return windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, reserved, lowBytes, highBytes, &windows.Overlapped{})
}
