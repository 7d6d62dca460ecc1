// Package socket is the agent's own socket, over which a command of the same program
// speaks to it:
//
//	listener, err := socket.Listen("/run/nodeagent/control.sock", logger)
//	...
//	client := socket.Client("/run/nodeagent/control.sock")
//
// # Concurrency properties
//
// A listener and a client may be used concurrently, as those of package net and net/http.
//
// # Failure modes
//
// Who is neither root nor the agent's own user is refused by the kernel, as the mode of
// the socket is 0600, and else by the listener, which asks the kernel who has connected. A
// socket that an agent has left behind is replaced; one that is in use is an error.
//
// # Testing
//
// The sockets are real ones, in t.TempDir.
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

	"k8s.io/klog/v2"
)

// Default is where the unit of the agent has its socket.
const Default = "/run/nodeagent/control.sock"

// dialTimeout bounds the connecting to a socket of this machine.
const dialTimeout = time.Second

// Listen makes the socket, and its folder where there is none. Its errors name it.
func Listen(path string, logger klog.Logger) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("failed to make the folder of the socket: %w", err)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	inner, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("failed to listen: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("failed to make the socket the owner's alone: %w", err), inner.Close())
	}
	return &listener{UnixListener: inner, logger: logger}, nil
}

// removeStale removes a socket that nobody listens on.
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
		return fmt.Errorf("failed to remove the socket of an earlier agent: %w", err)
	}
	return nil
}

// listener gives the connections of root and of its own user.
type listener struct {
	*net.UnixListener
	logger klog.Logger
}

// Accept closes the connections of others.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.UnixListener.Accept()
		if err != nil {
			return nil, err
		}
		refused := checkPeer(conn)
		if refused == nil {
			return conn, nil
		}
		l.logger.Error(errors.Join(refused, conn.Close()), "Refused a connection to the agent's socket")
	}
}

// Client speaks HTTP to the socket, whatever the host of a URL is.
func Client(path string) *http.Client {
	dialer := net.Dialer{Timeout: dialTimeout}
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", path)
		},
	}}
}
