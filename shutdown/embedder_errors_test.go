//go:build go1.25

package shutdown_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// nilError is an error type whose methods panic if the pointer is nil, as happens with a function
// that returns a nil *nilError as an error.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

func (e *nilError) Is(error) bool { return e.text == "" }

// A killer's error whose methods panic ends neither the process nor the drain.
func TestKillersErrorPanics(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.opts.Killer = shutdown.PodKillerFunc(func(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
			if pod.Name == "web" {
				return shutdown.KillResult{}, (*nilError)(nil)
			}
			return n.killer.KillPod(ctx, pod, req)
		})
		n.run()
		n.announce()
		n.advance(time.Minute)
		report := n.lastReport()
		require.Contains(t, report.Pods[0].Error, "panicked")
		require.Equal(t, "Graceful", report.Pods[1].Outcome)
	})
}

// The text of an error that is final is in the report, also if its Error method panics.
func TestKillersFinalErrorPanics(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Err: errors.Join(shutdown.ErrNoRetry, textlessError{})}
		n.run()
		n.announce()
		n.advance(time.Minute)
		require.NotEmpty(t, n.lastReport().Pods[0].Error)
	})
}

// textlessError is an error whose Error method panics.
type textlessError struct{}

func (textlessError) Error() string { panic("no text") }

// locklessHost is a host whose Inhibit returns neither a lock nor an error.
type locklessHost struct{ shutdown.Source }

func (s locklessHost) Connect(ctx context.Context) (shutdown.Session, error) {
	session, err := s.Source.Connect(ctx)
	return locklessSession{session}, err
}

type locklessSession struct{ shutdown.Session }

func (locklessSession) Inhibit(context.Context) (io.Closer, error) { return nil, nil } //nolint:nilnil // the mistake that the test is about

// A host that returns neither a lock nor an error does not count as held.
func TestHostGivesNoLock(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.opts.Source = locklessHost{n.host}
		n.run()
		require.Equal(t, shutdown.InhibitorTrying, n.m.Inhibitor().State)
		require.ErrorContains(t, n.m.Inhibitor().Err, "no lock")
	})
}

// flushFunc is a reporter that flushes with a function.
type flushFunc func(pod *v1.Pod) error

func (flushFunc) PublishNode(context.Context, shutdown.NodeState) error { return nil }

func (f flushFunc) FlushPod(_ context.Context, pod *v1.Pod) error { return f(pod) }

// A nil *StatusError of a reporter costs only the status of that pod.
func TestReportersErrorPanics(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.opts.Reporter = flushFunc(func(pod *v1.Pod) error {
			if pod.Name == "web" {
				return (*apierrors.StatusError)(nil)
			}
			return nil
		})
		n.run()
		n.announce()
		n.advance(time.Minute)
		report := n.lastReport()
		require.True(t, report.Pods[0].Unflushed)
		require.False(t, report.Pods[1].Unflushed)
	})
}

// wrongHost is a host that has errors whose methods panic when they are called.
type wrongHost struct {
	*shutdowntest.Host

	at string // the call that returns one
}

type wrongSession struct {
	shutdown.Session

	at string
}

func (h wrongHost) Connect(ctx context.Context) (shutdown.Session, error) {
	if h.at == "Connect" {
		return nil, (*nilError)(nil)
	}
	session, err := h.Host.Connect(ctx)
	return wrongSession{session, h.at}, err
}

func (s wrongSession) Pending(ctx context.Context) (*shutdown.Event, error) {
	if s.at == "Pending" {
		return nil, (*nilError)(nil)
	}
	return s.Session.Pending(ctx)
}

func (s wrongSession) RequestDelay(ctx context.Context, wish time.Duration) (time.Duration, error) {
	switch s.at {
	case "RequestDelay":
		return 0, (*nilError)(nil)
	case "RequestDelay, capped":
		return time.Second, errors.Join(&shutdown.DelayCappedError{Requested: wish, Granted: time.Second}, (*nilError)(nil))
	default:
		return s.Session.RequestDelay(ctx, wish)
	}
}

func (s wrongSession) Inhibit(ctx context.Context) (io.Closer, error) {
	if s.at == "Inhibit" {
		return nil, (*nilError)(nil)
	}
	return s.Session.Inhibit(ctx)
}

// An error of the host whose methods panic ends neither the process nor the event loop. It is what
// the state of the lock shows.
func TestHostsErrorPanics(t *testing.T) {
	for _, at := range []string{"Connect", "Pending", "RequestDelay", "RequestDelay, capped", "Inhibit"} {
		t.Run(at, func(t *testing.T) {
			inBubble(t, twoPods(), func(t *testing.T, n *node) {
				n.opts.Source = wrongHost{n.host, at}
				n.run()
				n.advance(time.Minute)
				require.Error(t, n.m.Inhibitor().Err)
				require.NoError(t, n.m.Trigger(shutdown.Event{}), "the loop goes on")
				n.advance(time.Minute)
				require.Len(t, n.killer.Kills(), 2)
			})
		})
	}
}

// eventlessHost is a host whose sessions panic when they are asked for their events.
type eventlessHost struct{ *shutdowntest.Host }

type eventlessSession struct{ shutdown.Session }

func (e eventlessHost) Connect(ctx context.Context) (shutdown.Session, error) {
	session, err := e.Host.Connect(ctx)
	return eventlessSession{session}, err
}

func (eventlessSession) Events() <-chan shutdown.Event { panic("no events") }

// A session that panics before it is used is closed too.
func TestHostsEventsPanic(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.opts.Source = eventlessHost{n.host}
		n.run()
		require.ErrorContains(t, n.m.Inhibitor().Err, "no events")
		calls := n.host.Calls()
		require.Equal(t, "close", calls[len(calls)-1])
	})
}
