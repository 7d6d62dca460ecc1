//go:build linux

package logind

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/kubegrace/kubegrace/internal/atomicfile"
)

// mark begins every drop-in of ours; a file without it is somebody else's.
const mark = "# Written by kubegrace: how long a node shutdown may be delayed.\n"

// dropIn is our configuration file for logind, wherever it can be.
type dropIn struct {
	root  string   // under which the host is to be seen
	files []string // as the host names them, by preference
}

func (o Options) dropIn() dropIn {
	d := dropIn{root: o.HostRoot}
	for _, dir := range o.DropInDirs {
		d.files = append(d.files, filepath.Join(dir, o.DropInName))
	}
	return d
}

// is says whether a file of the host is, or would be, ours.
func (d dropIn) is(file string) bool { return slices.Contains(d.files, file) }

// dropInText is the whole file. logind takes fractions too, but the kubelet's rounding
// turns 0.4 s into 0, which is no delay at all: whole seconds, rounded up.
func dropInText(wish time.Duration) []byte {
	seconds := int64(wish / time.Second)
	if wish%time.Second > 0 {
		seconds++
	}
	return fmt.Appendf(nil, "%s[Login]\n%s=%d\n", mark, delaySetting, seconds)
}

// find gives the content of the file that is there; nil if none is.
func (d dropIn) find() ([]byte, error) {
	for _, file := range d.files {
		// The first one decides: of files with one name logind reads no other.
		if content, err := readOurs(filepath.Join(d.root, file)); err != nil || content != nil {
			return content, err
		}
	}
	return nil, nil
}

// readOurs gives nil for a file that is not there, and an error for one that is
// not ours: it may be an administrator's mask, which is not to be overwritten.
func readOurs(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	// ENOTDIR: something else is where the directory should be; writing will tell.
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

// write puts the content into the first directory that takes it.
func (d dropIn) write(content []byte) error {
	var errs []error
	for _, file := range d.files {
		err := writeTo(filepath.Join(d.root, file), content)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func writeTo(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write the drop-in: %w", err)
	}
	if err := atomicfile.Write(path, content); err != nil {
		return fmt.Errorf("write the drop-in: %w", err)
	}
	return nil
}

// remove takes our file away, wherever it is.
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
