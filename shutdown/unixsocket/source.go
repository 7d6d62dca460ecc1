package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

// origin is the [source.Event.Origin] of this source's events.
const origin = "unixsocket"

const (
	// replyTimeout bounds the writing of a line to a host that does not read.
	replyTimeout = time.Second
	// maxPath leaves enough of the kernel's limit (103 bytes on macOS, 107 on Linux) for
	// the longer name that the socket has while it is made.
	maxPath = 90
)

// Options configure a [Source].
type Options struct {
	// Path is the path of the socket, at most 90 bytes. Its directory must exist. A file
	// that is there is replaced, whether it is the socket of a previous agent or of one
	// that runs. Required.
	Path string
	// Delay is how long the host waits when an announcement has no SECONDS. 0 means as
	// long as the manager requests; a negative value is an error.
	Delay time.Duration
}

// Source is the [source.Source] of a host that announces its shutdown on a unix socket
// and waits for the reply. Its events have the Origin "unixsocket". Make one with [New] and give it
// to one manager. All methods may be called concurrently.
type Source struct {
	options Options
	idle    time.Duration // idleTimeout, except in tests
	hosts   *hosts
}

var _ source.Source = (*Source)(nil)

// New validates the options. The socket does not exist before Connect, which the manager
// calls.
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
	return &Source{options: options, idle: idleTimeout, hosts: &hosts{delay: options.Delay}}, nil
}

// Connect listens on the socket. If another agent listens there, this one takes its
// place. ctx gives the session its logger and bounds the connecting; the end of ctx does
// not end the session.
func (s *Source) Connect(ctx context.Context) (source.Session, error) {
	if s == nil || s.hosts == nil {
		return nil, errors.New("unixsocket: the Source was not made with New")
	}
	if info, err := os.Lstat(s.options.Path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("failed to listen for the host on %s: it is a directory", s.options.Path)
	}
	if err := removeStale(s.options.Path, time.Now()); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to clean up beside the socket", "path", s.options.Path)
	}
	e, err := listen(ctx, s.options.Path)
	if err != nil {
		return nil, fmt.Errorf("failed to listen for the host on %s: %w", s.options.Path, err)
	}
	return newSession(ctx, s, e), nil
}
