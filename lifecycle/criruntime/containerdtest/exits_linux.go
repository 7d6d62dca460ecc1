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

// Exit is the exit of a container, as containerd reports it.
type Exit struct {
	Code uint32    `json:"exit_status"` // after a signal: 128 plus its number
	At   time.Time `json:"exited_at"`
}

// taskExit is containerd's event of an exit. For the exit of a command that was run in a container, such
// as an exec hook, ID differs from ContainerID.
type taskExit struct {
	Exit
	ContainerID string `json:"container_id"`
	ID          string `json:"id"`
}

// exitRecorder keeps the exits of a server's containers, by container ID.
type exitRecorder struct {
	mu          sync.Mutex
	byContainer map[string]Exit
}

// Exits returns the exits so far by container ID. They come from containerd's events, because the status of a
// container is lost when its pod is removed.
func (s *Server) Exits() map[string]Exit {
	s.exits.mu.Lock()
	defer s.exits.mu.Unlock()
	return maps.Clone(s.exits.byContainer)
}

// recordExits records the exits of containers until the end of the test. It returns when the first event has
// arrived, so that no later exit is missed.
func (s *Server) recordExits(t testing.TB) {
	t.Helper()
	s.exits.byContainer = map[string]Exit{}
	ctx, cancel := context.WithCancel(s.alive)
	events := s.command(ctx, "events")
	lines, err := events.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, events.Start())

	firstEvent := make(chan struct{})
	readerDone := make(chan struct{})
	go func() {
		defer close(readerDone)
		s.exits.read(lines, sync.OnceFunc(func() { close(firstEvent) }))
		_ = events.Wait() // fails, because the end of ctx kills it
	}()
	t.Cleanup(func() {
		cancel()
		<-readerDone
	})
	s.awaitFirstEvent(t, firstEvent)
}

// awaitFirstEvent waits until the recording has begun. ctr does not say when it has subscribed to events, so
// awaitFirstEvent provokes some by labelling an image, until the first one arrives.
func (s *Server) awaitFirstEvent(t testing.TB, firstEvent <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithTimeout(s.alive, startTimeout)
	defer cancel()
	for {
		out, err := s.command(ctx, "images", "label", pauseName, "provoked="+time.Now().Format("150405.000000000")).CombinedOutput()
		require.NoErrorf(t, err, "failed to label an image: %s", out)
		select {
		case <-firstEvent:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// read keeps the exits of containers from the output of "ctr events", lines of the form TIME NAMESPACE
// TOPIC JSON, until its end. It calls onLine for each line.
func (e *exitRecorder) read(lines io.Reader, onLine func()) {
	scanner := bufio.NewScanner(lines)
	scanner.Buffer(nil, 1<<20) // events may be longer than the default limit of a line
	for scanner.Scan() {
		onLine()
		_, event, found := strings.Cut(scanner.Text(), " /tasks/exit ")
		if !found {
			continue
		}
		var exit taskExit
		if err := json.Unmarshal([]byte(event), &exit); err != nil || exit.ID != exit.ContainerID {
			continue // not the exit of a container
		}
		e.mu.Lock()
		e.byContainer[exit.ContainerID] = exit.Exit
		e.mu.Unlock()
	}
}
