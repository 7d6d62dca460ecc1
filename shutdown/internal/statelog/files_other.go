//go:build !unix || solaris || illumos || aix

package statelog

import (
	"io/fs"
	"os"
)

// Owners and modes are not checked here, and folders are not locked.

const othersMayWrite fs.FileMode = 0

func openFile(path string, flags int) (*os.File, error) { return os.OpenFile(path, flags, 0o600) }

func isForeign(fs.FileInfo) bool { return false }

func tryLock(*os.File) error { return nil }
