//go:build linux

package logind

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kubegrace/kubegrace/internal/atomicfile"
	"github.com/kubegrace/kubegrace/internal/logindconf"
)

// ownedMark is the first line of every drop-in that this package writes. A file without this line belongs to somebody
// else, and is never changed.
const ownedMark = "# Written by kubegrace: how long a node shutdown may be delayed.\n"

// dropIn is the drop-in, the file with which this package raises logind's InhibitDelayMaxSec. The fields say where it may
// be.
type dropIn struct {
	root  string   // the directory with the host's file system
	files []string // paths on the host, the preferred one first
}

// dropIn returns where the drop-in may be by the options.
func (o Options) dropIn() dropIn {
	d := dropIn{root: o.HostRoot}
	for _, dir := range o.DropInDirs {
		d.files = append(d.files, filepath.Join(dir, o.DropInName))
	}
	return d
}

// dropInText returns the content of the drop-in. It rounds delay up to whole seconds. (The kubelet rounds
// down, so that 0.4 s becomes 0, with which logind does not delay a shutdown at all.)
func dropInText(delay time.Duration) []byte {
	seconds := int64(delay / time.Second)
	if delay%time.Second > 0 {
		seconds++
	}
	return fmt.Appendf(nil, "%s[Login]\n%s=%d\n", ownedMark, logindconf.Setting, seconds)
}

// find returns the content of the drop-in; nil if there is none. A file in its place that this package has not written is
// an error.
func (d dropIn) find() ([]byte, error) {
	for _, file := range d.files {
		// logind reads only the first of several files with the same name.
		if content, err := readOwned(filepath.Join(d.root, file)); err != nil || content != nil {
			return content, err
		}
	}
	return nil, nil
}

// readOwned returns the content of a drop-in that this package has written, or nil if the file does not exist.
// Any other file is an error: an administrator may have put it there to keep the drop-in out.
func readOwned(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	// ENOTDIR: a file is in the place of the directory. Then there is no drop-in, and the error of write will name the file.
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the drop-in: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a drop-in of kubegrace but %v; it was not changed", path, info.Mode().Type())
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the drop-in: %w", err)
	}
	if !bytes.HasPrefix(content, []byte(ownedMark)) {
		return nil, fmt.Errorf("%s was not written by kubegrace; it was not changed", path)
	}
	return content, nil
}

// write writes the drop-in to the first writable directory, and returns its path on the host. A file of that name in a
// directory that is not writable is an error, because logind would ignore one in a later directory.
func (d dropIn) write(content []byte) (written string, err error) {
	var errs []error
	for _, file := range d.files {
		path := filepath.Join(d.root, file)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = atomicfile.Write(path, content)
		}
		if err == nil {
			return file, nil
		}
		errs = append(errs, fmt.Errorf("write the drop-in: %w", err))
		if _, err := os.Lstat(path); err == nil { // logind would read this file, and none in a later directory
			break
		}
	}
	return "", errors.Join(errs...)
}

// remove removes the drop-in from all its paths. It leaves a file that this package did not write, and returns
// an error for it.
func (d dropIn) remove() error {
	var errs []error
	for _, file := range d.files {
		path := filepath.Join(d.root, file)
		content, err := readOwned(path)
		if err == nil && content != nil {
			err = os.Remove(path)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("remove the drop-in: %w", err))
		}
	}
	return errors.Join(errs...)
}
