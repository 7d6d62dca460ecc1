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

// MaxSize is the largest size, in bytes, of a state file that is read. A shutdown of 50,000 pods
// takes 20 MB.
const MaxSize = 64 << 20

// othersMayWrite are the mode bits that let users other than the owner write.
const othersMayWrite fs.FileMode = 0o022

// Read returns the content of a state file. If there is no file the error wraps [fs.ErrNotExist].
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
	data, err = io.ReadAll(io.LimitReader(f, MaxSize+1)) // the file may grow after Stat
	if err == nil && len(data) > MaxSize {
		err = fmt.Errorf("%s is larger than %d bytes", path, MaxSize)
	}
	return data, err
}

// checkOwner returns an error if a file is not regular or belongs to another user.
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

// check returns an error if a file is not to be read.
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

// CheckFolder returns an error if other users may put files into a state folder. Such a folder
// can still be used.
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

// RemoveLeftovers removes the temporary files of interrupted writes of these files. No other
// process may write them meanwhile.
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
