package document

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// MaxSize is the size in bytes of the largest file that is read: that of the kubelet's
// manifests (pkg/kubelet/config, maxConfigLength).
const MaxSize = 10 << 20

// ReadFile gives the content of a regular file, or of a link to one. A pipe, a device, and a
// file of more than [MaxSize] bytes are errors: their reading might never end. Errors
// name the file.
func ReadFile(file string) (text []byte, err error) {
	// A device is not even opened: some do something when they are.
	info, err := os.Stat(file)
	if err != nil {
		return nil, failed(file, err)
	}
	if err := check(file, info); err != nil {
		return nil, err
	}
	// A pipe that has taken the file's place since does not hold the opening.
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, failed(file, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err = f.Stat(); err != nil {
		return nil, failed(file, err)
	}
	if err := check(file, info); err != nil {
		return nil, err
	}
	text, err = io.ReadAll(io.LimitReader(f, MaxSize+1)) // it may grow while it is read
	switch {
	case err != nil:
		return nil, failed(file, err)
	case len(text) > MaxSize:
		return nil, tooLarge(file, int64(len(text)))
	}
	return text, nil
}

// failed names the file once: the errors of package os name it, too.
func failed(file string, err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("%s: failed to read: %w", file, err)
}

// check says what keeps a file from being read.
func check(file string, info os.FileInfo) error {
	switch {
	case info.IsDir():
		return fmt.Errorf("%s: is a folder, wanted is a file", file)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: is not a regular file but %s", file, kindOf(info.Mode()))
	case info.Size() > MaxSize:
		return tooLarge(file, info.Size())
	}
	return nil
}

func tooLarge(file string, size int64) error {
	return fmt.Errorf("%s: is too large: it has %d bytes or more, and %d (10 MiB) are the limit", file, size, MaxSize)
}

// kindOf names a file that is not regular.
func kindOf(mode os.FileMode) string {
	switch {
	case mode&os.ModeNamedPipe != 0:
		return "a pipe (FIFO)"
	case mode&os.ModeSocket != 0:
		return "a socket"
	case mode&os.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}
