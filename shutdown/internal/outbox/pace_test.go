package outbox_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

var groupResource = schema.GroupResource{Resource: "pods"}

// A server that answers with too many requests gets one call at a time, at last one a second, for
// few pods and for many.
func TestServerThatLimits(t *testing.T) {
	for _, pods := range []int{1, 5, 500} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.takes = time.Millisecond
			r.refuse(apierrors.NewTooManyRequestsError("slow down"))
			r.owe(podNames(pods)...)
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
				r.refuse(err)
				r.owe("a")
				advance(time.Minute)
				times := r.callStarts("status a")
				require.Equal(t, want, times[1]-times[0], name)
				require.Equal(t, want, times[5]-times[4], name)
				r.owe(podNames(20)...)
				before := len(r.callNames())
				advance(time.Minute)
				require.LessOrEqual(t, len(r.callNames())-before, int(time.Minute/want)+1, "for all pods")
			})
		}
	}
}

// The first acknowledgement restores the full pace for all that waits.
func TestServerThatRecovers(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = 10 * time.Millisecond
		r.refuse(apierrors.NewTooManyRequestsError("slow down"))
		r.owe(podNames(500)...)
		advance(20 * time.Second)
		require.Empty(t, r.acknowledged())
		r.refuse(nil)
		advance(3 * time.Second)
		require.Len(t, r.acknowledged(), 500)
	})
}

// A server that only fails gets fewer calls after ten failures in a row, of any pods. The first
// acknowledgement, even of the node state, restores the full pace.
func TestServerThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = time.Millisecond
		r.refuse(errRefused)
		r.owe(podNames(500)...)
		advance(30 * time.Second)
		rate := r.perSecond(30)
		require.LessOrEqual(t, rate[0], 25)
		for _, n := range rate[5:] {
			require.LessOrEqual(t, n, 1)
		}
		r.refuse(nil)
		r.Publish("on")
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
		r.owe(podNames(200)...)
		advance(250 * time.Millisecond)
		require.Len(t, r.acknowledged(), 100)
	})
}

// What takes two requests has twice the time of one: a pod that is to be deleted, a static pod, and a
// restoration. That they take so long makes no other call longer.
func TestCallsOfTwoRequests(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = 4 * time.Second
		deleted := pod("deleted")
		deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		r.Owe(deleted, nil, nil)
		r.Owe(staticPod("static"), nil, nil)
		r.RestoreMarked(pods("spared"))
		advance(4 * time.Second)
		require.Len(t, r.callNames(), 3)
		require.Empty(t, r.record())
		r.owe("next")
		synctest.Wait()
		require.Equal(t, []time.Duration{4500 * time.Millisecond, 4500 * time.Millisecond, 4500 * time.Millisecond, 3 * time.Second}, r.limit)
	})
}

// A call of two requests has the time of two also when others are answered.
func TestCallOfTwoRequestsBesideOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = 1800 * time.Millisecond
		r.Owe(staticPod("static"), nil, nil)
		synctest.Wait()
		r.set(func() { r.takes = 0 })
		advance(1700 * time.Millisecond)
		r.owe("quick")
		advance(time.Second)
		require.Len(t, r.callNames(), 2)
		require.Zero(t, r.Unacknowledged())
	})
}

// A silent server gets a new call every second at least, beside those that hang, so that its
// return is seen at once.
func TestSilentServer(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.answer = silent
		r.owe(podNames(500)...)
		advance(2 * time.Minute)
		rate := r.perSecond(120)
		require.Equal(t, 10, rate[0])
		for _, n := range rate[4:] {
			require.LessOrEqual(t, n, 10)
		}
		r.set(func() { r.answer, r.takes = nil, 100*time.Millisecond })
		advance(7 * time.Second)
		require.Len(t, r.acknowledged(), 500)
	})
}

// A call is ended after 2.25 s at first. Calls get more time only if no other is answered: the
// server may be slow.
func TestAttemptsOfASlowServer(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.takes = 7 * time.Second
		r.owe("a")
		advance(time.Minute)
		require.Equal(t, []time.Duration{2250 * time.Millisecond, 4500 * time.Millisecond, 9 * time.Second}, r.limit)
		require.Equal(t, []string{"a"}, r.acknowledged())
		require.ErrorIs(t, r.Failure(), call.ErrTimeSpent)
		r.owe("b")
		advance(time.Minute)
		require.Equal(t, 10500*time.Millisecond, r.limit[3], "half as long again as the last answer took")
		r.set(func() { r.takes = 0 })
		r.owe("c")
		synctest.Wait()
		r.owe("d")
		synctest.Wait()
		require.Equal(t, 10500*time.Millisecond*7/8, r.limit[len(r.limit)-1], "a quick answer does not make up for it")
		r.owe(podNames(30)...)
		synctest.Wait()
		r.owe("e")
		synctest.Wait()
		require.Equal(t, time.Second, r.limit[len(r.limit)-1])
	})
}

// A server that takes longer for one pod gets that time for it in the end. The others keep theirs.
func TestAttemptsOfASlowPod(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.answer = func(ctx context.Context, _, pod string, n int) error {
			if pod == "slow" && n < 9 {
				return silent(ctx, "", "", 0)
			}
			return nil
		}
		r.owe("slow")
		for range 60 {
			r.owe("quick")
			advance(time.Second)
		}
		require.Equal(t, []string{"slow"}, without(r.acknowledged(), "quick"))
		var limits []time.Duration
		for i, name := range r.callNames() {
			if name == "status slow" {
				limits = append(limits, r.limit[i])
			} else {
				require.LessOrEqual(t, r.limit[i], 2250*time.Millisecond)
			}
		}
		s := time.Second
		require.Equal(t, []time.Duration{2250 * time.Millisecond, s, s, s, s, s, s, 2 * s, 4 * s, 8 * s}, limits)
	})
}

// A call has the whole of its time: an answer that comes with the end of it counts, and with it
// nothing is sent twice. The time of the call follows from an answer before it, or from one that
// comes in the same instant.
func TestAnswerAtTheEndOfItsTime(t *testing.T) {
	for _, before := range []time.Duration{0, time.Second} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.answer = func(ctx context.Context, what, _ string, _ int) error {
				if what == "publish" {
					return nil
				}
				<-time.After(time.Second)
				synctest.Wait() // all else that this instant brings is over
				return context.Cause(ctx)
			}
			time.AfterFunc(before, func() { r.Publish("on") })
			if before == 0 {
				synctest.Wait()
			}
			r.owe("a")
			<-time.After(time.Minute)
			require.Len(t, r.callStarts("status a"), 1)
			require.Equal(t, []string{"a"}, r.acknowledged())
		})
	}
}

// Await returns as soon as nothing is pending, at once if nothing is.
func TestAwait(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		began := time.Now()
		require.True(t, r.AwaitAll(t.Context(), began.Add(-time.Hour), time.Second))
		r.takes = time.Second
		r.owe(podNames(40)...)
		require.True(t, r.AwaitAll(t.Context(), began.Add(time.Minute), time.Second))
		require.Equal(t, 4*time.Second, time.Since(began), "as long as it is answered")
		require.Len(t, r.acknowledged(), 40, "all were told before")
	})
}

// Await ends at its time and with its context, though the server answers.
func TestAwaitEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		began := time.Now()
		r.takes = time.Second
		r.owe(podNames(100)...)
		require.False(t, r.AwaitAll(t.Context(), began.Add(3500*time.Millisecond), time.Second))
		require.Equal(t, 3500*time.Millisecond, time.Since(began))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		require.False(t, r.AwaitAll(ctx, began.Add(time.Hour), time.Second))
		require.Equal(t, 4500*time.Millisecond, time.Since(began))
		require.True(t, r.AwaitAll(t.Context(), began.Add(time.Hour), time.Second), "neither was in vain")
		require.Equal(t, 10*time.Second, time.Since(began))
	})
}

// always is a pending that stays.
func always() bool { return true }

// A server that does not answer is waited for 2.5 s once, and then for the reserve only,
// until it answers again.
func TestAwaitInVain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		far := time.Now().Add(time.Hour)
		waits := func() time.Duration {
			began := time.Now()
			require.False(t, r.Await(t.Context(), always, far, 700*time.Millisecond))
			return time.Since(began)
		}
		r.refuseOnly("bad")
		r.owe("bad") // an error is no answer
		require.Equal(t, 2500*time.Millisecond, waits())
		require.Equal(t, 700*time.Millisecond, waits())
		require.Equal(t, 700*time.Millisecond, waits())
		r.Publish("on")
		synctest.Wait()
		require.Equal(t, 2500*time.Millisecond, waits())
		require.Equal(t, 700*time.Millisecond, waits())
		time.AfterFunc(500*time.Millisecond, func() { r.Publish("on") })
		require.Equal(t, 3*time.Second, waits(), "an answer within the reserve gives the whole patience back")
	})
}

// The beginning of the wait counts where the last answer is older. What was waited before
// without an answer counts too, also where its own time has ended it.
func TestAwaitCountsFromTheLater(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.Publish("on")
		advance(time.Minute)
		began := time.Now()
		require.False(t, r.Await(t.Context(), always, began.Add(time.Second), 100*time.Millisecond))
		require.Equal(t, time.Second, time.Since(began))
		began = time.Now()
		require.False(t, r.Await(t.Context(), always, began.Add(time.Hour), 100*time.Millisecond))
		require.Equal(t, 1500*time.Millisecond, time.Since(began))
	})
}

// What has become of no interest ends the wait with the next answer.
func TestAwaitAsksAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		began, wanted := time.Now(), 3
		pending := func() bool { wanted--; return wanted >= 0 }
		for i := range 3 {
			time.AfterFunc(time.Duration(i+1)*time.Second, func() { r.Publish("on") })
		}
		require.True(t, r.Await(t.Context(), pending, began.Add(time.Hour), time.Second))
		require.Equal(t, 3*time.Second, time.Since(began))
		synctest.Wait()
	})
}
