//go:build go1.25

package call_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/call"
)

var (
	errTest  = errors.New("refused")
	errCause = errors.New("cancelled")
)

// Two callers wait for the result of a future. When the future completes, both get it. A third call, made later and with a
// deadline in the past, gets it too.
func TestFutureReturnsItsResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		future, complete := call.NewFuture[int]()
		values := make(chan int, 2)
		for range 2 {
			go func() {
				value, _ := future.Await(t.Context(), time.Now().Add(time.Hour))
				values <- value
			}()
		}
		synctest.Wait()
		require.Empty(t, values)
		complete(7, errTest)
		require.Equal(t, 7, <-values)
		require.Equal(t, 7, <-values)

		<-future.Done()
		value, err := future.Await(t.Context(), time.Now().Add(-time.Hour))
		require.Equal(t, 7, value)
		require.ErrorIs(t, err, errTest)
	})
}

// A future has no result. Await returns ErrTimeSpent at its deadline, after 3 s. A second Await returns the cause of its
// context when the context ends, 1 s later.
func TestFutureWithoutAResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		future, complete := call.NewFuture[int]()
		defer complete(1, nil)
		began := time.Now()
		value, err := future.Await(t.Context(), began.Add(3*time.Second))
		require.ErrorIs(t, err, call.ErrTimeSpent)
		require.Zero(t, value)
		require.Equal(t, 3*time.Second, time.Since(began))

		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errCause) })
		_, err = future.Await(ctx, began.Add(time.Hour))
		require.ErrorIs(t, err, errCause)
		require.Equal(t, (3+1)*time.Second, time.Since(began))
	})
}

// Await returns an available result even if its context has ended and its deadline has passed. The test repeats this
// 200 times, because a select statement takes a random one of several ready channels.
func TestFutureThatIsCompleteReturnsItsResult(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 200 {
		future, complete := call.NewFuture[int]()
		complete(7, nil)
		value, err := future.Await(ended, time.Now().Add(-time.Second))
		require.NoError(t, err)
		require.Equal(t, 7, value)
	}
}

// The future of Start completes if the function returns, panics or ends its goroutine. The error of the last two has the name
// of the call.
func TestStartCompletesItsFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group call.Group
		for name, test := range map[string]struct {
			f     func(context.Context) (string, error)
			value string
			err   string // "": none
		}{
			"returns": {f: func(context.Context) (string, error) { return "some", nil }, value: "some"},
			"fails":   {f: func(context.Context) (string, error) { return "some", errTest }, value: "some", err: "refused"},
			"panics":  {f: func(context.Context) (string, error) { panic("of a pod") }, err: "panics panicked: of a pod"},
			"exits":   {f: func(context.Context) (string, error) { runtime.Goexit(); return "", nil }, err: "exits ended its goroutine"},
		} {
			value, err := call.Start(t.Context(), &group, name, test.f).Await(t.Context(), time.Now().Add(time.Second))
			require.Equal(t, test.value, value, name)
			if test.err == "" {
				require.NoError(t, err, name)
			} else {
				require.EqualError(t, err, test.err)
			}
		}
		require.Empty(t, group.Wait(neverGiveUp))
	})
}

// The function gets Start's context.
func TestStartPassesItsContext(t *testing.T) {
	var group call.Group
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	started := call.Start(ended, &group, "context", func(ctx context.Context) (int, error) { return 0, ctx.Err() })
	_, err := started.Await(t.Context(), time.Now().Add(time.Minute))
	require.ErrorIs(t, err, context.Canceled)
}

// A call hangs. Group.Wait, which may give up at once, returns the name of the call.
func TestWaitNamesACallThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group call.Group
		end := make(chan struct{})
		call.Start(t.Context(), &group, "Options.ListPods", func(context.Context) (int, error) { <-end; return 0, nil })
		giveUp := make(chan struct{})
		close(giveUp)
		require.Equal(t, []string{"Options.ListPods"}, group.Wait(giveUp))
		close(end)
		require.Empty(t, group.Wait(neverGiveUp))
	})
}
