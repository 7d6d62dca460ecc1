//go:build !unix || solaris || illumos || aix

package statelog

import (
	"io/fs"
	"os"
)

// Owners and modes are not checked here, and folders are not locked.

const othersMayWrite fs.FileMode = 0

// openFile opens a file. It does not check who owns it.
func openFile(path string, flags int) (*os.File, error) { return os.OpenFile(path, flags, 0o600) }

// isForeign reports that no file belongs to another user.
func isForeign(fs.FileInfo) bool { return false }

// tryLock does nothing, so that two agents with one folder are not noticed.
func tryLock(*os.File) error { return nil }
