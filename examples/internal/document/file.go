package document

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// MaxFileBytes is the size of the largest file that is read. The kubelet has the same limit
// for its manifests (pkg/kubelet/config, maxConfigLength).
const MaxFileBytes = 10 << 20

// ReadFile returns the content of a regular file, or of the regular file that a link leads
// to. A pipe and a device are errors, because reading them might never end, and so is a file
// of more than [MaxFileBytes] bytes. Errors name the file.
func ReadFile(file string) (text []byte, err error) {
	// The first check is before the opening, because opening some devices has side effects.
	info, err := os.Stat(file)
	if err != nil {
		return nil, readError(file, err)
	}
	if err := checkReadable(file, info); err != nil {
		return nil, err
	}
	// O_NONBLOCK: if a pipe has replaced the file meanwhile, the opening does not wait for a writer.
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, readError(file, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err = f.Stat(); err != nil {
		return nil, readError(file, err)
	}
	if err := checkReadable(file, info); err != nil {
		return nil, err
	}
	text, err = io.ReadAll(io.LimitReader(f, MaxFileBytes+1)) // the file may grow meanwhile
	switch {
	case err != nil:
		return nil, readError(file, err)
	case len(text) > MaxFileBytes:
		return nil, tooLarge(file, int64(len(text)))
	}
	return text, nil
}

// readError adds the name of the file to an error. It removes the name from an error of
// package os, so that the file is named once.
func readError(file string, err error) error {
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	return fmt.Errorf("%s: failed to read: %w", file, err)
}

// checkReadable returns an error for a file that ReadFile does not read.
func checkReadable(file string, info os.FileInfo) error {
	switch {
	case info.IsDir():
		return fmt.Errorf("%s: is a folder, wanted is a file", file)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: is not a regular file but %s", file, fileKind(info.Mode()))
	case info.Size() > MaxFileBytes:
		return tooLarge(file, info.Size())
	}
	return nil
}

func tooLarge(file string, size int64) error {
	return fmt.Errorf("%s: is too large: it has %d bytes or more, and %d (10 MiB) are the limit", file, size, MaxFileBytes)
}

// fileKind names the kind of a file that is not regular.
func fileKind(mode os.FileMode) string {
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
