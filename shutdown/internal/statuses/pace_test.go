package statuses_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupResource = schema.GroupResource{Resource: "pods"}

// perSecond is the number of calls that began in each second.
func (s *server) perSecond(seconds int) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := make([]int, seconds)
	for _, at := range s.at {
		if second := int(at / time.Second); second < seconds {
			n[second]++
		}
	}
	return n
}

// A server that answers with too many requests gets one call at a time, at last one a second, for
// few pods and for many.
func TestServerThatLimits(t *testing.T) {
	for _, pods := range []int{1, 5, 500} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.takes = time.Millisecond
			r.answer = func(context.Context, string, string, int) error {
				return apierrors.NewTooManyRequestsError("slow down")
			}
			r.queueStatuses(podNames(pods)...)
			advance(time.Minute)
			rate := r.perSecond(60)
			require.LessOrEqual(t, rate[0], 14)
			for _, n := range rate[5:] {
				require.LessOrEqual(t, n, 1)
			}
			require.Greater(t, len(r.callNames()), 50, "and it goes on being asked")
			require.True(t, apierrors.IsTooManyRequests(r.Failure()))
		})
	}
}

// The server can name the pause, in 429 and in other answers; 5 s at most count.
func TestServerThatNamesThePause(t *testing.T) {
	for seconds, want := range map[int]time.Duration{3: 3 * time.Second, 100: 5 * time.Second} {
		for name, err := range map[string]error{
			"429": apierrors.NewTooManyRequests("slow down", seconds),
			"500": apierrors.NewServerTimeout(groupResource, "patch", seconds),
		} {
			inBubble(t, func(t *testing.T, r *rig) {
				r.answer = func(context.Context, string, string, int) error { return err }
				r.queueStatuses("a")
				advance(time.Minute)
				times := r.callStarts("status a")
				require.Equal(t, want, times[1]-times[0], name)
				require.Equal(t, want, times[5]-times[4], name)
			})
		}
	}
}

// The first acknowledgement restores the full pace for all that waits.
func TestServerThatRecovers(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = 10 * time.Millisecond
		bad := true
		r.answer = func(context.Context, string, string, int) error {
			r.server.mu.Lock()
			defer r.server.mu.Unlock()
			if bad {
				return apierrors.NewTooManyRequestsError("slow down")
			}
			return nil
		}
		r.queueStatuses(podNames(500)...)
		advance(20 * time.Second)
		require.Empty(t, r.acknowledged())
		r.server.mu.Lock()
		bad = false
		r.server.mu.Unlock()
		advance(3 * time.Second)
		require.Len(t, r.acknowledged(), 500)
	})
}

// A server that only fails gets fewer calls after ten failures in a row, of any pods. The first
// acknowledgement, even of another call, restores the full pace.
func TestServerThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = time.Millisecond
		bad := true
		r.answer = func(context.Context, string, string, int) error {
			r.server.mu.Lock()
			defer r.server.mu.Unlock()
			if bad {
				return errRefused
			}
			return nil
		}
		r.queueStatuses(podNames(500)...)
		advance(30 * time.Second)
		rate := r.perSecond(30)
		require.LessOrEqual(t, rate[0], 25)
		for _, n := range rate[5:] {
			require.LessOrEqual(t, n, 1)
		}
		r.server.mu.Lock()
		bad = false
		r.server.mu.Unlock()
		r.Acknowledged()
		advance(100 * time.Millisecond)
		require.Len(t, r.acknowledged(), 500)
	})
}

// Pods that are refused one by one do not delay the others.
func TestRefusalsBetweenAcknowledgements(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = 10 * time.Millisecond
		r.answer = func(_ context.Context, _, pod string, _ int) error {
			if pod[len(pod)-1]%2 == 0 {
				return errRefused
			}
			return nil
		}
		r.queueStatuses(podNames(200)...)
		advance(250 * time.Millisecond)
		require.Len(t, r.acknowledged(), 100)
	})
}

// Await returns as soon as nothing is pending, at once if nothing is.
func TestAwait(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		began, pending := time.Now(), func() bool { return r.Pending() > 0 }
		require.True(t, r.Await(t.Context(), pending, began.Add(-time.Hour), time.Second))
		r.takes = time.Second
		r.queueStatuses(podNames(40)...)
		require.True(t, r.Await(t.Context(), pending, began.Add(time.Minute), time.Second))
		require.Equal(t, 4*time.Second, time.Since(began), "as long as it is answered")
	})
}

// Await ends at its time and with its context, though the server answers.
func TestAwaitEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		began, pending := time.Now(), func() bool { return r.Pending() > 0 }
		r.takes = time.Second
		r.queueStatuses(podNames(100)...)
		require.False(t, r.Await(t.Context(), pending, began.Add(3500*time.Millisecond), time.Second))
		require.Equal(t, 3500*time.Millisecond, time.Since(began))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		require.False(t, r.Await(ctx, pending, began.Add(time.Hour), time.Second))
		require.Equal(t, 4500*time.Millisecond, time.Since(began))
		require.True(t, r.Await(t.Context(), pending, began.Add(time.Hour), time.Second), "neither was in vain")
		require.Equal(t, 10*time.Second, time.Since(began))
	})
}

// A server that does not answer is waited for 2.5 s once, and then for the reserve only,
// until it answers again.
func TestAwaitInVain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		pending, far := func() bool { return true }, time.Now().Add(time.Hour)
		waits := func() time.Duration {
			began := time.Now()
			require.False(t, r.Await(t.Context(), pending, far, 700*time.Millisecond))
			return time.Since(began)
		}
		r.answer = func(context.Context, string, string, int) error { return errRefused }
		r.queueStatuses("bad") // an error is no answer
		require.Equal(t, 2500*time.Millisecond, waits())
		require.Equal(t, 700*time.Millisecond, waits())
		require.Equal(t, 700*time.Millisecond, waits())
		r.Acknowledged()
		require.Equal(t, 2500*time.Millisecond, waits())
		require.Equal(t, 700*time.Millisecond, waits())
		time.AfterFunc(500*time.Millisecond, r.Acknowledged)
		require.Equal(t, 3*time.Second, waits(), "an answer within the reserve gives the whole patience back")
	})
}

// The beginning of the wait counts where the last answer is older. What was waited before
// without an answer counts too, also where its own time has ended it.
func TestAwaitCountsFromTheLater(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		pending := func() bool { return true }
		r.Acknowledged()
		advance(time.Minute)
		began := time.Now()
		require.False(t, r.Await(t.Context(), pending, began.Add(time.Second), 100*time.Millisecond))
		require.Equal(t, time.Second, time.Since(began))
		began = time.Now()
		require.False(t, r.Await(t.Context(), pending, began.Add(time.Hour), 100*time.Millisecond))
		require.Equal(t, 1500*time.Millisecond, time.Since(began))
	})
}

// What has become of no interest ends the wait with the next answer.
func TestAwaitAsksAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		began, wanted := time.Now(), 3
		pending := func() bool { wanted--; return wanted >= 0 }
		for i := range 3 {
			time.AfterFunc(time.Duration(i+1)*time.Second, r.Acknowledged)
		}
		require.True(t, r.Await(t.Context(), pending, began.Add(time.Hour), time.Second))
		require.Equal(t, 3*time.Second, time.Since(began))
		synctest.Wait()
	})
}
