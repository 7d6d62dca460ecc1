//go:build go1.25

package criruntime

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// fakeLister lists containers in the states that a test sets.
type fakeLister struct {
	mu     sync.Mutex
	states map[string]runtimeapi.ContainerState
	lists  int   // how many lists were requested
	err    error // of each list; nil: it succeeds
}

func (l *fakeLister) list(context.Context) ([]*runtimeapi.Container, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lists++
	var containers []*runtimeapi.Container
	for id, state := range l.states {
		containers = append(containers, &runtimeapi.Container{Id: id, State: state})
	}
	return containers, l.err
}

func (l *fakeLister) set(id string, state runtimeapi.ContainerState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.states[id] = state
}

// succeed makes all later lists succeed again.
func (l *fakeLister) succeed() { l.fail(nil) }

// fail makes all later lists fail with err.
func (l *fakeLister) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

// count returns how many lists were requested.
func (l *fakeLister) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lists
}

// startWatcher runs an exitWatcher on a fakeLister until the end of the test.
func startWatcher(t *testing.T) (*fakeLister, *exitWatcher) {
	l := &fakeLister{states: map[string]runtimeapi.ContainerState{}}
	w := newExitWatcher(t.Context(), l.list)
	t.Cleanup(w.close)
	return l, w
}

// isClosed waits until all goroutines of the bubble are blocked, and reports whether the channel is closed.
func isClosed(channel <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

// A running container, which two callers watch, is listed at once and then once per interval: 1 + 10 times in ten
// intervals. Its exit is found by the next list, and both callers learn of it.
func TestPollingDetectsAnExitWithinOneInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lister, watcher := startWatcher(t)
		lister.set("a", runtimeapi.ContainerState_CONTAINER_RUNNING)
		exited1, exited2 := watcher.watch("a"), watcher.watch("a")
		<-time.After(10*pollInterval + 1) // just after the list at the end of the tenth interval
		require.False(t, isClosed(exited1))
		require.Equal(t, 1+10, lister.count())

		lister.set("a", runtimeapi.ContainerState_CONTAINER_EXITED)
		began := time.Now()
		<-exited1
		<-exited2
		require.LessOrEqual(t, time.Since(began), pollInterval)
	})
}

// A container has exited before it is watched. Nothing else is watched, so polling begins with a list, which finds the exit at
// once.
func TestPollingDetectsAnEarlierExitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lister, watcher := startWatcher(t)
		lister.set("ended", runtimeapi.ContainerState_CONTAINER_EXITED)
		began := time.Now()
		<-watcher.watch("ended")
		require.Zero(t, time.Since(began))
	})
}

// While a running container is polled, an exited container and one that does not exist begin to be watched. The list at the end
// of the interval finds that they do not run. The running one stays watched.
func TestPollingDetectsAnEarlierExitWithTheNextList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lister, watcher := startWatcher(t)
		lister.set("running", runtimeapi.ContainerState_CONTAINER_RUNNING)
		lister.set("ended", runtimeapi.ContainerState_CONTAINER_EXITED)
		began := time.Now()
		running := watcher.watch("running")
		<-time.After(pollInterval / 2)
		ended, unknown := watcher.watch("ended"), watcher.watch("unknown")
		<-ended
		<-unknown
		require.Equal(t, pollInterval, time.Since(began))
		require.False(t, isClosed(running))
	})
}

// Only the state EXITED is an exit. A container in the state CREATED or UNKNOWN may still run.
func TestCreatedAndUnknownContainersHaveNotExited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lister, watcher := startWatcher(t)
		lister.set("created", runtimeapi.ContainerState_CONTAINER_CREATED)
		lister.set("unknown", runtimeapi.ContainerState_CONTAINER_UNKNOWN)
		created, unknown := watcher.watch("created"), watcher.watch("unknown")
		<-time.After(3 * pollInterval)
		require.False(t, isClosed(created))
		require.False(t, isClosed(unknown))
	})
}

// While no container is watched, nothing is listed, even for an hour. A watched container does not exist, so the first list ends
// its watch, and for another hour nothing is listed.
func TestPollingStopsWhileNothingIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lister, watcher := startWatcher(t)
		<-time.After(time.Hour)
		require.Zero(t, lister.count())

		<-watcher.watch("unknown")
		require.Empty(t, watcher.watchedIDs())
		<-time.After(time.Hour)
		require.Equal(t, 1, lister.count())
	})
}

// A failed list says nothing about a container, so it must not be taken for the container's exit. The exit is found once
// lists succeed again.
func TestPollingDetectsAnExitOnlyOnceListsSucceed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lister, watcher := startWatcher(t)
		lister.fail(errors.New("restarting"))
		exited := watcher.watch("a")
		<-time.After(10 * pollInterval)
		require.False(t, isClosed(exited))
		lister.succeed()
		<-exited
	})
}

// After close an exit is not reported and nothing new is watched. close may be called twice.
func TestNothingIsWatchedAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lister, watcher := startWatcher(t)
		lister.set("a", runtimeapi.ContainerState_CONTAINER_RUNNING)
		exited := watcher.watch("a")
		watcher.close()
		lister.set("a", runtimeapi.ContainerState_CONTAINER_EXITED)
		<-time.After(time.Hour)
		require.False(t, isClosed(exited))
		require.Nil(t, watcher.watch("a"))
		watcher.close()
	})
}
