package shutdown

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/statuses"
)

// Writes run one after the other. Of the writes that wait only the newest runs.
func TestJournalOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		var calls call.Group
		var written []int
		store := func(n int) func() error {
			return func() error {
				<-time.After(time.Second) // a slow disk
				written = append(written, n)
				return nil
			}
		}
		w := writeRequest{ctx: t.Context(), calls: &calls, shutdown: 1}
		j.write(w, store(1))
		synctest.Wait()
		j.write(w, store(2))
		last := j.write(w, store(3))
		began := time.Now()
		<-last.Done()
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Empty(t, calls.Wait(nil))
		require.Equal(t, []int{1, 3}, written)
	})
}

// A write with a lag keeps the next one waiting, so that a newer one can replace it. The end of
// its context ends the lag.
func TestJournalLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		var calls call.Group
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		w := writeRequest{ctx: ctx, calls: &calls, shutdown: 1, lag: time.Minute}
		<-j.write(w, func() error { cancel(); return nil }).Done()
		require.Equal(t, time.Minute, time.Since(began))
		<-j.write(w, func() error { return nil }).Done()
		require.Equal(t, time.Minute, time.Since(began))
		require.Empty(t, calls.Wait(nil))
	})
}

// A newer state replaces an older one that waits to be published.
func TestAnnouncerSkipsWhatIsSuperseded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var calls call.Group
		reporter := &slowReporter{over: make(chan struct{})}
		a := &announcer{ctx: ctx, calls: &calls, queue: statuses.New(ctx, &calls), reporter: reporter, attempt: time.Minute}
		a.publish(NodeState{Kind: KindHalt})
		synctest.Wait() // until the first state is being published
		skipped, last := a.publish(NodeState{Kind: KindReboot}), a.publish(NodeState{})
		close(reporter.over)
		require.NoError(t, last.await(ctx, time.Now().Add(time.Hour)))
		require.ErrorIs(t, skipped.await(ctx, time.Now()), errSuperseded)
		require.Equal(t, []NodeState{{Kind: KindHalt}, {}}, reporter.published)
		cancel()
		require.Empty(t, calls.Wait(nil))
	})
}

// slowReporter publishes once over is closed. It ignores its contexts.
type slowReporter struct {
	over      chan struct{}
	published []NodeState
}

func (r *slowReporter) PublishNode(_ context.Context, state NodeState) error {
	<-r.over
	r.published = append(r.published, state)
	return nil
}
