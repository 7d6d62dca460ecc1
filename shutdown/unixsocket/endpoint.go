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
	// staleAfter is the age from which a leftover of listen belongs to an agent that has
	// died. A listen takes less than a millisecond.
	staleAfter = 10 * time.Second
	// probeTimeout bounds the connection that probes whether another agent listens.
	probeTimeout = time.Second
)

// endpoint is a listening socket and its file.
type endpoint struct {
	*net.UnixListener

	path string
	file os.FileInfo
}

// listen binds the socket in a new directory that only this user can enter, sets its
// mode, and moves it to path. So nobody else can connect at any moment, whatever the
// umask is, and the socket of a previous agent is replaced.
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

// boundName is the name of the socket in that directory.
const boundName = "s"

// bind listens at bound and moves the socket to path.
func bind(ctx context.Context, bound, path string) (*endpoint, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", bound)
	if err != nil {
		return nil, err
	}
	e := &endpoint{UnixListener: listener.(*net.UnixListener), path: path} // the network is "unix"
	e.SetUnlinkOnClose(false)                                              // the listener would remove the wrong name
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

// inPlace reports whether the file at path is this socket. The socket is open, so its
// inode cannot be reused by another file.
func (e *endpoint) inPlace() bool {
	file, err := os.Lstat(e.path)
	return err == nil && os.SameFile(file, e.file)
}

// close removes the file, unless it belongs to another agent by now, and stops listening.
func (e *endpoint) close() error {
	var err error
	if e.inPlace() {
		err = os.Remove(e.path)
	}
	return errors.Join(err, e.Close())
}

// taken reports whether another agent listens at path.
func (e *endpoint) taken(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	probe, err := new(net.Dialer).DialContext(ctx, "unix", e.path)
	if err != nil {
		return false
	}
	_ = probe.Close() // nothing was sent
	return true
}

// removeStale removes what agents left behind that died during listen: a directory with a
// socket in it, or a socket, named like path with a dot and digits appended.
func removeStale(path string, now time.Time) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		digits, ok := strings.CutPrefix(entry.Name(), filepath.Base(path)+".")
		if !ok || digits == "" || strings.Trim(digits, "0123456789") != "" {
			continue
		}
		info, err := entry.Info()
		if err != nil || now.Sub(info.ModTime()) < staleAfter {
			continue // it is gone, or another agent is listening right now
		}
		name := filepath.Join(filepath.Dir(path), entry.Name())
		left := []string{name}
		switch info.Mode().Type() {
		case fs.ModeSocket:
		case fs.ModeDir:
			left = []string{filepath.Join(name, boundName), name}
		default:
			continue // no agent makes other files
		}
		for _, name := range left {
			if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, fmt.Errorf("remove what a previous agent has left: %w", err))
				break
			}
		}
	}
	return errors.Join(errs...)
}
