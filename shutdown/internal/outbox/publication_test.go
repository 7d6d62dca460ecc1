//go:build go1.25

package outbox_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/outbox"
)

// A state is published once, and the one who waits learns that at once.
func TestPublish(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = time.Second
		p := r.Publish("on")
		require.True(t, p.StartedAt.Equal(r.began))
		require.False(t, p.AnsweredSince())
		require.NoError(t, p.Await(t.Context(), r.began.Add(time.Hour)))
		require.Equal(t, time.Second, time.Since(r.began))
		require.True(t, p.AnsweredSince())
		advance(time.Hour)
		require.Equal(t, []string{"publish on"}, r.callNames())
	})
}

// AnsweredSince counts any acknowledgement, and no error.
func TestAnsweredSince(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.owe("before")
		synctest.Wait()
		r.refuse(errRefused)
		p := r.Publish("on")
		r.owe("bad")
		synctest.Wait()
		require.False(t, p.AnsweredSince())
		r.refuse(nil)
		r.owe("good")
		synctest.Wait()
		require.True(t, p.AnsweredSince())
	})
}

// A state that is refused is published again, with a pause that doubles from 100 ms to 30 s,
// whatever the function does. The one who waits in vain gets the last error.
func TestPublishAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.answer = func(_ context.Context, _, _ string, n int) error {
			switch n {
			case 1:
				panic("of a reporter")
			case 2:
				runtime.Goexit()
			case 12:
				return nil
			default:
			}
			return errRefused
		}
		p := r.Publish("on")
		err := p.Await(t.Context(), r.began.Add(250*time.Millisecond))
		require.EqualError(t, err, "failed to publish the node state: Options.Reporter.PublishNode panicked: of a reporter")
		require.Equal(t, 250*time.Millisecond, time.Since(r.began))
		advance(time.Hour)
		ms := time.Millisecond
		require.Equal(t, []time.Duration{0, 100 * ms, 300 * ms, 700 * ms, 1500 * ms, 3100 * ms, 6300 * ms, 12700 * ms, 25500 * ms, 51100 * ms, 81100 * ms, 111100 * ms, 141100 * ms}, r.callStarts("publish on"))
		require.NoError(t, p.Await(t.Context(), time.Now()))
	})
}

// A call of Publish ends a little before the wait for it, so that the one who waits sees its
// error. If nobody waits it has 5 s.
func TestAttemptsToPublish(t *testing.T) {
	for attempt, want := range map[time.Duration]time.Duration{2 * time.Second: 1980 * time.Millisecond, 40 * time.Millisecond: 5 * time.Second, 0: 5 * time.Second, -1: 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			r := &rig{script: &script{began: time.Now(), answer: silent}}
			options := r.options()
			options.PublishAttempt = attempt
			r.Outbox = outbox.New(options)
			leave := r.Open(quiet(t))
			err := r.Publish("on").Await(t.Context(), r.began.Add(want+publishLead))
			require.ErrorIs(t, err, call.ErrTimeSpent)
			require.Equal(t, want, r.limit[0])
			require.Empty(t, leave().Wait(nil))
		})
	}
}

const publishLead = 20 * time.Millisecond

// A newer state supersedes an older one: its call ends, it is not published again, and the newer
// one waits for no pause.
func TestPublishSupersedes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.refuse(errRefused)
		refused := r.Publish("refused")
		advance(2 * time.Second)
		r.set(func() { r.answer = silent })
		hangs := r.Publish("hangs")
		synctest.Wait()
		require.Len(t, r.callStarts("publish hangs"), 1, "at once")
		r.refuse(nil)
		last := r.Publish("last")
		require.ErrorIs(t, refused.Await(t.Context(), time.Now().Add(time.Minute)), errRefused)
		require.EqualError(t, hangs.Await(t.Context(), time.Now().Add(time.Minute)), "failed to publish the node state: a newer node state has to be published")
		require.NoError(t, last.Await(t.Context(), time.Now().Add(time.Minute)))
		require.Equal(t, 2*time.Second, time.Since(r.began))
		before := len(r.callNames())
		advance(time.Hour)
		require.Len(t, r.callNames(), before)
		r.Publish("another")
		synctest.Wait()
		require.Len(t, r.callNames(), before+1)
	})
}

// A newer state has pauses of its own.
func TestPausesOfANewerState(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.refuse(errRefused)
		r.Publish("on") // its next call would be at 3.1 s
		advance(2 * time.Second)
		r.Publish("off")
		advance(1500 * time.Millisecond)
		ms := time.Millisecond
		require.Equal(t, []time.Duration{2000 * ms, 2100 * ms, 2300 * ms, 2700 * ms, 3500 * ms}, r.callStarts("publish off"))
	})
}

// An outbox that is opened again does not wait for the pause of the last opening.
func TestPauseEndsWithTheOpening(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.refuse(errRefused)
		r.Publish("on") // its next call would be at 3.1 s
		advance(2 * time.Second)
		require.Empty(t, r.leave().Wait(nil))
		r.refuse(nil)
		before := len(r.callNames())
		r.leave = r.Open(quiet(t))
		synctest.Wait()
		require.Len(t, r.callNames(), before+1)
	})
}

// A call that ignores the end of its context delays the newer state, because the later one must
// arrive last, but nobody who waits.
func TestDeafPublish(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		over := make(chan struct{})
		r.answer = func(_ context.Context, _, pod string, _ int) error {
			if pod == "on" {
				<-over
			}
			return nil
		}
		on := r.Publish("on")
		require.ErrorIs(t, on.Await(t.Context(), r.began.Add(time.Second)), call.ErrTimeSpent)
		off := r.Publish("off")
		advance(time.Minute)
		require.Len(t, r.callNames(), 1)
		close(over)
		synctest.Wait()
		require.NoError(t, off.Await(t.Context(), time.Now()))
		require.Error(t, on.Await(t.Context(), time.Now()), "it was superseded")
		require.Equal(t, []string{"publish on", "publish off"}, r.callNames())
	})
}

// Statuses that fail do not delay the node state, which is not one of the ten calls.
func TestPublishBesideStatuses(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.answer = func(ctx context.Context, what, _ string, _ int) error {
			if what == "status" {
				return silent(ctx, "", "", 0)
			}
			return nil
		}
		r.owe(podNames(50)...)
		advance(10 * time.Second)
		p := r.Publish("on")
		synctest.Wait()
		require.NoError(t, p.Await(t.Context(), time.Now()))
	})
}

// The end of the outbox does not hide the last error.
func TestErrorOfAPublicationAfterTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.refuse(errRefused)
		p := r.Publish("on")
		synctest.Wait()
		r.set(func() { r.answer = silent })
		advance(time.Second)
		require.Empty(t, r.leave().Wait(nil))
		require.ErrorIs(t, p.Await(t.Context(), time.Now()), errRefused)
	})
}

// A wait ends with its context.
func TestPublicationAwaitEndsWithItsContext(t *testing.T) {
	closed(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errRefused)
		require.ErrorIs(t, r.Publish("on").Await(ctx, r.began.Add(time.Hour)), errRefused)
		require.Zero(t, time.Since(r.began))
	})
}
