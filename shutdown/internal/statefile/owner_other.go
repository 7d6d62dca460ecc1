//go:build !unix

package statefile

import (
	"io/fs"
	"os"
)

// hasOwners tells whether modes and owners of files mean something.
const hasOwners = false

// openWithoutWaiting opens a file.
func openWithoutWaiting(path string) (*os.File, error) { return os.Open(path) }

// foreign tells whether a file belongs to somebody else.
func foreign(fs.FileInfo) bool { return false }

func openLock(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) }
