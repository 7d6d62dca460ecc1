package containerdtest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Exit is how and when a container ended, in containerd's own words.
type Exit struct {
	Code uint32    `json:"exit_status"` // 128 and the signal's number when one killed it
	At   time.Time `json:"exited_at"`
}

// taskExit is containerd's event. A command that was run in a container has an ID of
// its own.
type taskExit struct {
	Exit
	ContainerID string `json:"container_id"`
	ID          string `json:"id"`
}

// exits collects the events of a server.
type exits struct {
	mu   sync.Mutex
	seen map[string]Exit
}

// Exits gives the exits so far by container ID. They are taken from containerd's
// events, because the status of a container is gone as soon as its pod is removed.
func (s *Server) Exits() map[string]Exit {
	s.exits.mu.Lock()
	defer s.exits.mu.Unlock()
	return maps.Clone(s.exits.seen)
}

// recordExits follows the events of containerd until the end of the test. It returns
// when they really come in: a subscription is not acknowledged, so images are
// labelled until an event tells of it.
func (s *Server) recordExits(t testing.TB) {
	t.Helper()
	s.exits.seen = map[string]Exit{}
	ctx, cancel := context.WithCancel(s.alive)
	events := s.command(ctx, "events")
	lines, err := events.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, events.Start())

	first := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		s.exits.read(lines, sync.OnceFunc(func() { close(first) }))
		_ = events.Wait() // it is killed in the end: its status says nothing
	})
	t.Cleanup(func() {
		cancel()
		reading.Wait()
	})
	s.provokeEvents(t, first)
}

// provokeEvents returns when the first event has come in.
func (s *Server) provokeEvents(t testing.TB, first <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithTimeout(s.alive, startTimeout)
	defer cancel()
	for {
		out, err := s.command(ctx, "images", "label", pauseName, "provoked="+time.Now().Format("150405.000000000")).CombinedOutput()
		require.NoErrorf(t, err, "failed to label an image: %s", out)
		select {
		case <-first:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// read takes lines that are written TIME NAMESPACE TOPIC JSON, and calls heard for
// each.
func (e *exits) read(lines io.Reader, heard func()) {
	scanner := bufio.NewScanner(lines)
	scanner.Buffer(nil, 1<<20) // the end of a line is the end of an event, however long
	for scanner.Scan() {
		heard()
		_, event, found := strings.Cut(scanner.Text(), " /tasks/exit ")
		if !found {
			continue
		}
		var exit taskExit
		if err := json.Unmarshal([]byte(event), &exit); err != nil || exit.ID != exit.ContainerID {
			continue // what is missing then is missed by the test that looks for it
		}
		e.mu.Lock()
		e.seen[exit.ContainerID] = exit.Exit
		e.mu.Unlock()
	}
}
