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
	// staleAfter is the age at which a leftover of a listen is that of an agent which
	// has died within it: it takes less than a millisecond.
	staleAfter = 10 * time.Second
	// probeTimeout bounds the question whether somebody listens.
	probeTimeout = time.Second
)

// endpoint is a listening socket and the file through which it is found.
type endpoint struct {
	*net.UnixListener

	path string
	file os.FileInfo
}

// listen binds the socket in a directory that is the agent's alone, gives it its mode,
// and moves it into its place: at no moment can anyone else connect, whatever the umask,
// and nothing of a former agent is in the way.
func listen(ctx context.Context, path string) (*endpoint, error) {
	private, err := os.MkdirTemp(filepath.Dir(path), filepath.Base(path)+".*") // of mode 0700
	if err != nil {
		return nil, err
	}
	bound := filepath.Join(private, boundName)
	e, err := bind(ctx, bound, path)
	if err != nil {
		_ = os.Remove(bound) // it may not be there
	}
	if failed := os.Remove(private); failed != nil && err == nil {
		err = errors.Join(failed, e.close())
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// boundName is the socket's name before it has its own.
const boundName = "s"

// bind listens at bound and moves that to path.
func bind(ctx context.Context, bound, path string) (*endpoint, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", bound)
	if err != nil {
		return nil, err
	}
	e := &endpoint{UnixListener: listener.(*net.UnixListener), path: path} // by the network's name
	e.SetUnlinkOnClose(false)                                              // it will have another name
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

// inPlace tells whether the file at the path is this socket. The socket is open, so that
// no other file has its inode.
func (e *endpoint) inPlace() bool {
	file, err := os.Lstat(e.path)
	return err == nil && os.SameFile(file, e.file)
}

// close removes the file, unless it is another's by now, and stops to listen.
func (e *endpoint) close() error {
	var err error
	if e.inPlace() {
		err = os.Remove(e.path)
	}
	return errors.Join(err, e.Close())
}

// taken tells whether somebody else listens at the path.
func (e *endpoint) taken(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	probe, err := new(net.Dialer).DialContext(ctx, "unix", e.path)
	if err != nil {
		return false
	}
	_ = probe.Close() // nothing was said
	return true
}

// removeStale removes what agents have left that died while they listened: a directory
// with a socket in it, or a socket, named as the path with digits behind it.
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
			continue // it is gone, or somebody is at it
		}
		errs = append(errs, removeLeftover(filepath.Join(filepath.Dir(path), entry.Name()), info.Mode().Type()))
	}
	return errors.Join(errs...)
}

func removeLeftover(name string, kind fs.FileMode) error {
	switch kind {
	case fs.ModeSocket:
	case fs.ModeDir:
		if err := os.Remove(filepath.Join(name, boundName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove what a former agent has left: %w", err)
		}
	default:
		return nil // not ours
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what a former agent has left: %w", err)
	}
	return nil
}
