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
)

// mark is the first line of every drop-in that this package writes. A file without it
// belongs to somebody else and is not changed.
const mark = "# Written by kubegrace: how long a node shutdown may be delayed.\n"

// dropIn is the drop-in of this package and the places where it may be.
type dropIn struct {
	root  string   // the directory that has the host's file system
	files []string // paths on the host, the preferred one first
}

func (o Options) dropIn() dropIn {
	d := dropIn{root: o.HostRoot}
	for _, dir := range o.DropInDirs {
		d.files = append(d.files, filepath.Join(dir, o.DropInName))
	}
	return d
}

// dropInText returns the content of the drop-in. It rounds wish up to whole seconds.
// logind accepts fractions too, but rounding down, as the kubelet does, would turn 0.4 s
// into 0, which means no delay.
func dropInText(wish time.Duration) []byte {
	seconds := int64(wish / time.Second)
	if wish%time.Second > 0 {
		seconds++
	}
	return fmt.Appendf(nil, "%s[Login]\n%s=%d\n", mark, delaySetting, seconds)
}

// find returns the content of the drop-in, or nil if there is none.
func (d dropIn) find() ([]byte, error) {
	for _, file := range d.files {
		// Of several files with the same name logind reads only the first.
		if content, err := readOurs(filepath.Join(d.root, file)); err != nil || content != nil {
			return content, err
		}
	}
	return nil, nil
}

// readOurs returns nil for a file that does not exist, and an error for a file that this
// package did not write: an administrator may have masked the drop-in on purpose.
func readOurs(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	// With ENOTDIR a file is in the place of the directory; writing will report that.
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the drop-in: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a drop-in of ours but %v; it is left alone", path, info.Mode().Type())
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the drop-in: %w", err)
	}
	if !bytes.HasPrefix(content, []byte(mark)) {
		return nil, fmt.Errorf("%s was not written by kubegrace; it is left alone", path)
	}
	return content, nil
}

// write writes the drop-in into the first directory that is writable, and returns its path on the host.
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
	}
	return "", errors.Join(errs...)
}

// remove removes the drop-in from all its places. Files of others stay, and are errors.
func (d dropIn) remove() error {
	var errs []error
	for _, file := range d.files {
		path := filepath.Join(d.root, file)
		content, err := readOurs(path)
		if err == nil && content != nil {
			err = os.Remove(path)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("remove the drop-in: %w", err))
		}
	}
	return errors.Join(errs...)
}
