package cri

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

// listing is a runtime that can be asked for its containers, in a bubble, where
// time is exact.
type listing struct {
	mu     sync.Mutex
	states map[string]runtimeapi.ContainerState
	looks  int
	err    error
}

func (l *listing) list(context.Context) ([]*runtimeapi.Container, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looks++
	var containers []*runtimeapi.Container
	for id, state := range l.states {
		containers = append(containers, &runtimeapi.Container{Id: id, State: state})
	}
	return containers, l.err
}

func (l *listing) set(id string, state runtimeapi.ContainerState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.states[id] = state
}

func (l *listing) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.looks
}

// polling runs the watcher for the length of a bubble.
func polling(t *testing.T) (*listing, *exits) {
	l := &listing{states: map[string]runtimeapi.ContainerState{}}
	e := newExits(l.list)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { e.run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return l, e
}

func (e *exits) watchNow(id string) <-chan struct{} {
	channel := e.watch(id)
	e.lookNow()
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
		l, e := polling(t)
		l.set("a", runtimeapi.ContainerState_CONTAINER_RUNNING)
		exited := e.watchNow("a")
		<-time.After(10*pollInterval + 1)
		require.False(t, isClosed(exited))
		require.Equal(t, 11, l.count())

		l.set("a", runtimeapi.ContainerState_CONTAINER_EXITED)
		began := time.Now()
		<-exited
		require.LessOrEqual(t, time.Since(began), pollInterval)
	})
}

func TestPollingTellsAtOnceOfWhatHadExited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, e := polling(t)
		l.set("a", runtimeapi.ContainerState_CONTAINER_RUNNING)
		l.set("b", runtimeapi.ContainerState_CONTAINER_EXITED)
		running := e.watchNow("a")
		<-time.After(pollInterval / 2)
		began := time.Now()
		<-e.watchNow("b")
		<-e.watchNow("gone")
		require.Zero(t, time.Since(began), "without waiting for the next turn")
		require.False(t, isClosed(running))
	})
}

func TestPollingDoesNotTakeACreatedContainerForAnExitedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, e := polling(t)
		l.set("a", runtimeapi.ContainerState_CONTAINER_CREATED)
		l.set("b", runtimeapi.ContainerState_CONTAINER_UNKNOWN)
		a, b := e.watchNow("a"), e.watchNow("b")
		<-time.After(3 * pollInterval)
		require.False(t, isClosed(a))
		require.False(t, isClosed(b))
	})
}

func TestPollingRestsWhileNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, e := polling(t)
		<-time.After(time.Hour)
		require.Zero(t, l.count())
		<-e.watchNow("gone")
		<-time.After(time.Hour)
		require.LessOrEqual(t, l.count(), 2)
		require.Empty(t, e.waiting(), "nothing is kept of a container that has exited")
	})
}

// events is a stream that ends when the channel is closed.
type events chan *runtimeapi.ContainerEventResponse

func (e events) Recv() (*runtimeapi.ContainerEventResponse, error) {
	event, ok := <-e
	if !ok {
		return nil, io.EOF
	}
	return event, nil
}

func TestPollingIsRareWhileEventsComeIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, e := polling(t)
		stream := make(events)
		heard := make(chan error)
		go func() { heard <- e.hear(stream) }()
		stream <- &runtimeapi.ContainerEventResponse{ContainerId: "somebody's"}
		synctest.Wait()

		l.set("a", runtimeapi.ContainerState_CONTAINER_RUNNING)
		missed := e.watchNow("a")
		<-time.After(10*checkInterval + 1)
		require.Equal(t, 11, l.count())
		l.set("a", runtimeapi.ContainerState_CONTAINER_EXITED) // and its event is missed
		began := time.Now()
		<-missed
		require.LessOrEqual(t, time.Since(began), checkInterval)

		close(stream)
		require.ErrorIs(t, <-heard, io.EOF)
	})
}

func TestPollingTakesOverAtOnceWhenTheEventsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, e := polling(t)
		stream := make(events)
		heard := make(chan error)
		go func() { heard <- e.hear(stream) }()
		stream <- &runtimeapi.ContainerEventResponse{ContainerId: "somebody's"}
		l.set("a", runtimeapi.ContainerState_CONTAINER_RUNNING)
		l.set("b", runtimeapi.ContainerState_CONTAINER_RUNNING)
		first, second := e.watchNow("a"), e.watchNow("b")
		synctest.Wait()

		l.set("a", runtimeapi.ContainerState_CONTAINER_EXITED)
		close(stream)
		require.Error(t, <-heard)
		require.True(t, isClosed(first), "what exited while the stream broke, without waiting for a turn")
		l.set("b", runtimeapi.ContainerState_CONTAINER_EXITED)
		began := time.Now()
		<-second
		require.LessOrEqual(t, time.Since(began), pollInterval)
	})
}

func TestPollingKnowsNothingWhileTheRuntimeFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, e := polling(t)
		l.err = errors.New("restarting")
		exited := e.watchNow("a")
		<-time.After(10 * pollInterval)
		require.False(t, isClosed(exited), "an unknown state is not an exit")
	})
}

func TestAllWhoWaitAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, e := polling(t)
		l.set("a", runtimeapi.ContainerState_CONTAINER_RUNNING)
		first, second := e.watchNow("a"), e.watchNow("a")
		e.exited("a")
		e.exited("a") // an event that comes twice is harmless
		require.True(t, isClosed(first))
		require.True(t, isClosed(second))
	})
}
