package shutdown

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// Writes come one after the other, and only the newest of those that wait is
// written at all.
func TestJournalOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		var work sync.WaitGroup
		var written []int
		store := func(n int) func() error {
			return func() error {
				<-time.After(time.Second) // a slow disk
				written = append(written, n)
				return nil
			}
		}
		w := writing{ctx: t.Context(), work: &work, shutdown: 1}
		j.write(w, store(1))
		synctest.Wait()
		j.write(w, store(2))
		last := j.write(w, store(3))
		began := time.Now()
		<-last.done
		require.Equal(t, 2*time.Second, time.Since(began))
		work.Wait()
		require.Equal(t, []int{1, 3}, written)
	})
}

// A write that nobody waits for waits itself for a newer one; the end of its
// context cuts that short.
func TestJournalLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		var work sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		w := writing{ctx: ctx, work: &work, shutdown: 1, lag: time.Minute}
		<-j.write(w, func() error { cancel(); return nil }).done
		require.Equal(t, time.Minute, time.Since(began))
		<-j.write(w, func() error { return nil }).done
		require.Equal(t, time.Minute, time.Since(began))
		work.Wait()
	})
}

// A newer state in the queue keeps an older one from being published.
func TestAnnouncerSkipsWhatIsSuperseded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		published := make(chan NodeState, 8)
		a := &announcer{reporter: publishing(published), wake: make(chan struct{}, 1)}
		first, second := a.say("", "", &NodeState{ShuttingDown: true}), a.say("", "", &NodeState{})
		ctx, cancel := context.WithCancel(t.Context())
		var work sync.WaitGroup
		work.Go(func() { a.run(ctx) })
		<-second.settled
		require.ErrorIs(t, first.err, errSuperseded)
		require.Len(t, published, 1)
		cancel()
		work.Wait()
	})
}

// publishing is a reporter that only publishes.
type publishing chan<- NodeState

func (p publishing) PublishNode(_ context.Context, state NodeState) error { p <- state; return nil }

func (publishing) FlushPods(context.Context, []*v1.Pod) error { return nil }
