package statefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// MaxSize is the size of the largest state file that is read: that of a shutdown of
// 50,000 pods has 20 MB.
const MaxSize = 64 << 20

// othersMayWrite are the bits of a mode that let others than the owner write.
const othersMayWrite fs.FileMode = 0o022

// Read gives the content of a state file. Without one the error wraps [fs.ErrNotExist].
func Read(path string) (data []byte, err error) {
	f, err := openWithoutWaiting(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := check(path, info); err != nil {
		return nil, err
	}
	data, err = io.ReadAll(io.LimitReader(f, MaxSize+1)) // it may grow while it is read
	if err == nil && len(data) > MaxSize {
		err = fmt.Errorf("%s is larger than %d bytes", path, MaxSize)
	}
	return data, err
}

// checkOwn says what keeps a file from being one of ours.
func checkOwner(path string, info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file but %v", path, info.Mode().Type())
	case isForeign(info):
		return fmt.Errorf("%s belongs to neither this user nor root", path)
	default:
		return nil
	}
}

// check says what keeps a file from being read.
func check(path string, info fs.FileInfo) error {
	if err := checkOwner(path, info); err != nil {
		return err
	}
	switch mode := info.Mode(); {
	case info.Size() > MaxSize:
		return fmt.Errorf("%s has %d bytes, %d are the most", path, info.Size(), MaxSize)
	case mode.Perm()&othersMayWrite != 0 && hasOwners:
		return fmt.Errorf("%s may be written to by others: its mode is %v", path, mode.Perm())
	default:
		return nil
	}
}

// CheckFolder says what is wrong with a state folder that can be used nevertheless: others
// may put files into it. Nil: nothing is.
func CheckFolder(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if hasOwners && info.Mode().Perm()&othersMayWrite != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("folder %s may be written to by others: its mode is %v", dir, info.Mode().Perm())
	}
	return nil
}

// RemoveLeftovers removes what writes of these files have left that were cut off in their
// middle. Nobody may write them meanwhile.
func RemoveLeftovers(dir string, names ...string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		for _, name := range names {
			if strings.HasPrefix(entry.Name(), ".tmp-"+name) && !entry.IsDir() {
				errs = append(errs, os.Remove(filepath.Join(dir, entry.Name())))
			}
		}
	}
	return errors.Join(errs...)
}
