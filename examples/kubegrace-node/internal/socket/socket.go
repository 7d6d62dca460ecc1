package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// Default is the path of the socket in the agent's systemd unit.
const Default = "/run/kubegrace-node/control.sock"

// dialTimeout bounds a connection attempt. The socket is local, so a second is plenty.
const dialTimeout = time.Second

// Listen creates the socket at path, and its folder if there is none. Errors name the path.
func Listen(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("failed to make the folder of the socket: %w", err)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("failed to listen: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("failed to make the socket the owner's alone: %w", err), listener.Close())
	}
	return listener, nil
}

// removeStale removes a socket on which no process listens: an agent that was killed leaves one. If there is
// anything else at the path, removeStale leaves it there and returns an error.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("failed to look at the socket: %w", err)
	case info.Mode()&os.ModeSocket == 0:
		return fmt.Errorf("%s: is there already, and is no socket", path)
	}
	conn, err := net.DialTimeout("unix", path, dialTimeout)
	if err == nil {
		return errors.Join(fmt.Errorf("%s: another agent listens there", path), conn.Close())
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("failed to remove the socket of a previous agent: %w", err)
	}
	return nil
}

// Client returns an HTTP client that sends all requests to the socket. The host in a URL
// is ignored.
func Client(path string) *http.Client {
	dialer := net.Dialer{Timeout: dialTimeout}
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", path)
		},
	}}
}
