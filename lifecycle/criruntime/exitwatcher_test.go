//go:build go1.25

package criruntime

import (
	"context"
	"errors"
	"io"
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
	lists  int
	err    error
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

func (l *fakeLister) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lists
}

// startWatcher runs an exitWatcher until the end of the test.
func startWatcher(t *testing.T) (*fakeLister, *exitWatcher) {
	l := &fakeLister{states: map[string]runtimeapi.ContainerState{}}
	w := newExitWatcher(l.list)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return l, w
}

func (w *exitWatcher) watchNow(id string) <-chan struct{} {
	channel := w.watch(id)
	w.pollNow()
	return channel
}

func isClosed(channel <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

func TestPollingNoticesAnExitWithinOneInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := startWatcher(t)
		l.set("a", runtimeapi.ContainerState_CONTAINER_RUNNING)
		exited := w.watchNow("a")
		<-time.After(10*pollInterval + 1)
		require.False(t, isClosed(exited))
		require.Equal(t, 11, l.count())

		l.set("a", runtimeapi.ContainerState_CONTAINER_EXITED)
		began := time.Now()
		<-exited
		require.LessOrEqual(t, time.Since(began), pollInterval)
	})
}

func TestPollingNoticesAtOnceWhatHadExitedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := startWatcher(t)
		l.set("a", runtimeapi.ContainerState_CONTAINER_RUNNING)
		l.set("b", runtimeapi.ContainerState_CONTAINER_EXITED)
		running := w.watchNow("a")
		<-time.After(pollInterval / 2)
		began := time.Now()
		<-w.watchNow("b")
		<-w.watchNow("gone")
		require.Zero(t, time.Since(began), "without waiting for the next poll")
		require.False(t, isClosed(running))
	})
}

func TestPollingDoesNotTakeACreatedContainerForAnExitedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := startWatcher(t)
		l.set("a", runtimeapi.ContainerState_CONTAINER_CREATED)
		l.set("b", runtimeapi.ContainerState_CONTAINER_UNKNOWN)
		a, b := w.watchNow("a"), w.watchNow("b")
		<-time.After(3 * pollInterval)
		require.False(t, isClosed(a))
		require.False(t, isClosed(b))
	})
}

func TestPollingStopsWhileNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := startWatcher(t)
		<-time.After(time.Hour)
		require.Zero(t, l.count())
		<-w.watchNow("gone")
		<-time.After(time.Hour)
		require.LessOrEqual(t, l.count(), 2)
		require.Empty(t, w.watchedIDs(), "a container that has exited is no longer watched")
	})
}

// fakeStream is a stream of events that ends when the channel is closed.
type fakeStream chan *runtimeapi.ContainerEventResponse

func (s fakeStream) Recv() (*runtimeapi.ContainerEventResponse, error) {
	event, ok := <-s
	if !ok {
		return nil, io.EOF
	}
	return event, nil
}

// openStream lets w read a stream, and returns when w has received the first event. The
// channel receives the error with which readEvents ends.
func openStream(w *exitWatcher) (fakeStream, <-chan error) {
	stream, streamEnd := make(fakeStream), make(chan error)
	go func() { streamEnd <- w.readEvents(stream) }()
	stream <- &runtimeapi.ContainerEventResponse{ContainerId: "another"}
	synctest.Wait()
	return stream, streamEnd
}

func TestPollingIsRareWhileEventsComeIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := startWatcher(t)
		stream, streamEnd := openStream(w)

		l.set("a", runtimeapi.ContainerState_CONTAINER_RUNNING)
		missed := w.watchNow("a")
		<-time.After(10*pollIntervalWithEvents + 1)
		require.Equal(t, 11, l.count())
		l.set("a", runtimeapi.ContainerState_CONTAINER_EXITED) // its event is lost
		began := time.Now()
		<-missed
		require.LessOrEqual(t, time.Since(began), pollIntervalWithEvents)

		close(stream)
		require.ErrorIs(t, <-streamEnd, io.EOF)
	})
}

func TestPollingIsFrequentAgainWhenTheStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := startWatcher(t)
		stream, streamEnd := openStream(w)
		l.set("a", runtimeapi.ContainerState_CONTAINER_RUNNING)
		l.set("b", runtimeapi.ContainerState_CONTAINER_RUNNING)
		first, second := w.watchNow("a"), w.watchNow("b")
		synctest.Wait()

		l.set("a", runtimeapi.ContainerState_CONTAINER_EXITED)
		close(stream)
		require.Error(t, <-streamEnd)
		require.True(t, isClosed(first), "an exit while the stream broke is noticed without waiting for the next poll")
		l.set("b", runtimeapi.ContainerState_CONTAINER_EXITED)
		began := time.Now()
		<-second
		require.LessOrEqual(t, time.Since(began), pollInterval)
	})
}

func TestPollingReportsNoExitWhileTheListFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := startWatcher(t)
		l.err = errors.New("restarting")
		exited := w.watchNow("a")
		<-time.After(10 * pollInterval)
		require.False(t, isClosed(exited), "an unknown state is not an exit")
	})
}

func TestAllWhoWatchAContainerNoticeItsExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w := startWatcher(t)
		l.set("a", runtimeapi.ContainerState_CONTAINER_RUNNING)
		first, second := w.watchNow("a"), w.watchNow("a")
		w.reportExit("a")
		w.reportExit("a") // a repeated event is harmless
		require.True(t, isClosed(first))
		require.True(t, isClosed(second))
	})
}
