package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

// origin is the [source.Event.Origin] of this source's events.
const origin = "unixsocket"

const (
	// replyTimeout is the timeout of writing a line to a host, which may not read.
	replyTimeout = time.Second
	// maxPath is the length of the longest path, in bytes. It is less than the kernel's limit of 103 bytes on
	// macOS and 107 on Linux: the socket is made under a longer name and then moved to its path.
	maxPath = 90
)

// Options configures a [Source].
type Options struct {
	// Path is the absolute path of the socket, at most 90 bytes. Its folder must exist. An existing
	// socket, even that of a running agent, is replaced; with another file there, Connect fails. Required.
	Path string
	// Delay is how long the host waits after an announcement without SECONDS. 0: as long as the manager
	// requests. Negative: an error.
	Delay time.Duration
}

// Source is the [source.Source] of a host that announces its shutdown on a unix socket. Its events have
// the Origin "unixsocket". Make one with [New] for each manager. All methods may be called
// concurrently.
type Source struct {
	options     Options
	idleTimeout time.Duration // shorter in tests
	hosts       *hosts
}

var _ source.Source = (*Source)(nil)

// New validates the options. Connect, which the manager calls, creates the socket.
func New(options Options) (*Source, error) {
	switch {
	case options.Path == "":
		return nil, errors.New("unixsocket: Options.Path is required")
	case !filepath.IsAbs(options.Path):
		return nil, fmt.Errorf("unixsocket: Options.Path %q must be an absolute path", options.Path)
	case len(options.Path) > maxPath:
		return nil, fmt.Errorf("unixsocket: Options.Path must not have more than %d bytes: %q", maxPath, options.Path)
	case options.Delay < 0:
		return nil, fmt.Errorf("unixsocket: Options.Delay must not be negative: %v", options.Delay)
	}
	return &Source{options: options, idleTimeout: idleTimeout, hosts: &hosts{delay: options.Delay}}, nil
}

// Connect listens on the socket. It replaces the socket of another agent that listens there. ctx bounds the
// connecting and has the session's logger; its end does not end the session.
func (s *Source) Connect(ctx context.Context) (source.Session, error) {
	if s == nil || s.hosts == nil {
		return nil, errors.New("unixsocket: the Source was not made with New")
	}
	if info, err := os.Lstat(s.options.Path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("failed to listen for the host on %s: it exists and is no socket, its mode is %v", s.options.Path, info.Mode())
	}
	if err := removeStale(s.options.Path, time.Now()); err != nil && !errors.Is(err, fs.ErrNotExist) { // listen names a missing folder
		klog.FromContext(ctx).Error(err, "Failed to remove leftovers beside the socket", "path", s.options.Path)
	}
	e, err := listen(ctx, s.options.Path)
	if err != nil {
		return nil, fmt.Errorf("failed to listen for the host on %s: %w", s.options.Path, err)
	}
	return newSession(ctx, s, e), nil
}
