//go:build !unix

package store

import (
	"io/fs"
	"os"
)

// hasOwners reports whether the mode and the owner of a file mean something.
const hasOwners = false

// openWithoutWaiting opens a file.
func openWithoutWaiting(path string) (*os.File, error) { return os.Open(path) }

// isForeign reports whether a file belongs to another user.
func isForeign(fs.FileInfo) bool { return false }

func openLockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}
