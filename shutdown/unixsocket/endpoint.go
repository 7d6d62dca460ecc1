package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// staleAfter is how old a temporary file of listen must be to be removed as the leftover of an agent that
	// died. A listen in progress is much younger: it takes less than a millisecond.
	staleAfter = 10 * time.Second
	// probeTimeout is the timeout of the check whether another agent listens.
	probeTimeout = time.Second
)

// endpoint is a listening socket and its file.
type endpoint struct {
	*net.UnixListener

	path string
	file os.FileInfo // the file of this socket, to recognize it at path
}

// listen binds the socket in a private folder, sets its mode, and moves it to path. So other users cannot
// connect before the mode is set, whatever the umask is. The move replaces the socket of a previous
// agent.
func listen(ctx context.Context, path string) (*endpoint, error) {
	private, err := os.MkdirTemp(filepath.Dir(path), filepath.Base(path)+".*") // with mode 0700
	if err != nil {
		return nil, err
	}
	e, err := bind(ctx, filepath.Join(private, boundName), path)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(private))
	}
	if err := os.Remove(private); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// boundName is the socket's name in the private folder.
const boundName = "s"

// bind listens at bound, a path in a private folder, and moves the socket to path. So the socket appears at path with
// its mode already set. After an error nothing listens.
func bind(ctx context.Context, bound, path string) (*endpoint, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", bound)
	if err != nil {
		return nil, err
	}
	e := &endpoint{UnixListener: listener.(*net.UnixListener), path: path} // the network is "unix"
	e.SetUnlinkOnClose(false)                                              // the listener would remove the old name
	err = os.Chmod(bound, 0o600)
	if err == nil {
		e.file, err = os.Lstat(bound)
	}
	if err == nil {
		err = os.Rename(bound, path)
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return e, nil
}

// isInPlace reports whether the file at path is still this socket, so that hosts reach it. Another file cannot
// be mistaken for it: the inode is not reused while the socket is open.
func (e *endpoint) isInPlace() bool {
	file, err := os.Lstat(e.path)
	return err == nil && os.SameFile(file, e.file)
}

// close stops listening and removes the file at path, unless that is another agent's.
func (e *endpoint) close() error {
	var err error
	if e.isInPlace() {
		err = os.Remove(e.path)
	}
	return errors.Join(err, e.Close())
}

// isTaken reports whether another agent listens at path. It connects to find out, because the socket's file stays there
// when an agent dies.
func (e *endpoint) isTaken(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	probe, err := new(net.Dialer).DialContext(ctx, "unix", e.path)
	if err != nil {
		return false
	}
	_ = probe.Close()
	return true
}

// removeStale removes what listen has left beside path if its process died: a folder with a socket, or a
// socket. The name is that of path with a dot and digits appended. Anything else is left alone.
func removeStale(path string, now time.Time) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		digits, hasPrefix := strings.CutPrefix(entry.Name(), filepath.Base(path)+".")
		isNumber := digits != "" && strings.Trim(digits, "0123456789") == ""
		if isOurs := hasPrefix && isNumber; !isOurs { // os.MkdirTemp has not made the name
			continue
		}
		info, err := entry.Info()
		if err != nil || now.Sub(info.ModTime()) < staleAfter {
			continue // it is gone, or another agent's listen is in progress
		}
		errs = append(errs, removeLeftover(filepath.Join(filepath.Dir(path), entry.Name()), info.Mode().Type()))
	}
	return errors.Join(errs...)
}

// removeLeftover removes a socket, or a folder with a socket, that listen has left at path. A file of another type is not an
// agent's: nothing is removed.
func removeLeftover(path string, fileType fs.FileMode) error {
	var err error
	switch fileType {
	case fs.ModeSocket:
		err = os.Remove(path)
	case fs.ModeDir:
		err = os.Remove(filepath.Join(path, boundName))
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = os.Remove(path) // fails if the folder has anything else
		}
	default:
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("remove a leftover of a previous agent: %w", err)
}
