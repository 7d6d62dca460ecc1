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
		l, w := startWatcher(t)
		l.set("a", runtimeapi.ContainerState_CONTAINER_RUNNING)
		exited, other := w.watch("a"), w.watch("a")
		<-time.After(10*pollInterval + 1) // just after the list at the end of the tenth interval
		require.False(t, isClosed(exited))
		require.Equal(t, 11, l.count())

		l.set("a", runtimeapi.ContainerState_CONTAINER_EXITED)
		began := time.Now()
		<-exited
		<-other
		require.LessOrEqual(t, time.Since(began), pollInterval)
	})
}

// b has exited before it is watched. If nothing else is watched, polling begins with a list, which finds the exit at once.
// While the running container a is polled, the list at the end of the interval finds the exit of b, and also that "gone" does
// not exist. a stays watched.
func TestPollingDetectsAnEarlierExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := startWatcher(t)
		l.set("a", runtimeapi.ContainerState_CONTAINER_RUNNING)
		l.set("b", runtimeapi.ContainerState_CONTAINER_EXITED)
		began := time.Now()
		<-w.watch("b")
		require.Zero(t, time.Since(began), "polling begins with a list")
		running := w.watch("a")
		<-time.After(pollInterval / 2)
		ended, gone := w.watch("b"), w.watch("gone")
		<-ended
		<-gone
		require.Equal(t, pollInterval, time.Since(began))
		require.False(t, isClosed(running))
	})
}

// Only the state EXITED is an exit. A created or unknown container may still run.
func TestCreatedAndUnknownContainersHaveNotExited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := startWatcher(t)
		l.set("a", runtimeapi.ContainerState_CONTAINER_CREATED)
		l.set("b", runtimeapi.ContainerState_CONTAINER_UNKNOWN)
		a, b := w.watch("a"), w.watch("b")
		<-time.After(3 * pollInterval)
		require.False(t, isClosed(a))
		require.False(t, isClosed(b))
	})
}

// While no container is watched, nothing is listed, even for an hour. "gone" does not exist, so the first list ends its
// watch, and for another hour nothing is listed.
func TestPollingStopsWhileNothingIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := startWatcher(t)
		<-time.After(time.Hour)
		require.Zero(t, l.count())
		<-w.watch("gone")
		<-time.After(time.Hour)
		require.Equal(t, 1, l.count())
		require.Empty(t, w.watchedIDs(), "a container that has exited is no longer watched")
	})
}

// A failed list says nothing about a container, so it must not be taken for the container's exit. The exit is found once
// lists succeed again.
func TestPollingDetectsAnExitOnlyOnceListsSucceed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := startWatcher(t)
		l.fail(errors.New("restarting"))
		exited := w.watch("a")
		<-time.After(10 * pollInterval)
		require.False(t, isClosed(exited), "an unknown state is not an exit")
		l.succeed()
		<-exited
	})
}

// After close an exit is not reported and nothing new is watched. close may be called twice.
func TestNothingIsWatchedAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := startWatcher(t)
		l.set("a", runtimeapi.ContainerState_CONTAINER_RUNNING)
		exited := w.watch("a")
		w.close()
		l.set("a", runtimeapi.ContainerState_CONTAINER_EXITED)
		<-time.After(time.Hour)
		require.False(t, isClosed(exited))
		require.Nil(t, w.watch("a"))
		w.close()
	})
}
