//go:build go1.25

package outbox_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// losing is a server that takes some time for each request and does not answer the lost ones.
func (r *rig) losing(takes time.Duration, isLost func(request int) bool) {
	request := 0
	r.answer = func(ctx context.Context, _, _ string, _ int) error {
		r.mu.Lock()
		request++
		lost := isLost(request)
		r.mu.Unlock()
		if lost {
			return silent(ctx, "", "", 0)
		}
		select {
		case <-time.After(takes):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// A server that loses single requests gets all statuses, long before the host's time is over,
// whatever time it takes for the others.
func TestLostRequests(t *testing.T) {
	for _, ms := range []int{70, 350, 750, 1300, 1500, 1750, 2000} {
		takes := time.Duration(ms) * time.Millisecond
		for every := 2; every <= 10; every++ {
			for _, pods := range []int{10, 30, 31} {
				t.Run(fmt.Sprintf("%d pods, %d ms, every %d. lost", pods, ms, every), func(t *testing.T) {
					inBubble(t, func(t *testing.T, r *rig) {
						r.losing(takes, func(request int) bool { return request%every == 0 })
						r.owe(podNames(pods)...)
						arrived, after := r.AwaitAll(t.Context(), r.began.Add(27*time.Second), time.Second), time.Since(r.began)
						r.leave()
						require.True(t, arrived, "%d are left after %v", r.Unacknowledged(), after)
						if every > 2 {
							require.LessOrEqual(t, after, 18*time.Second)
						}
					})
				})
			}
		}
	}
}

// The same where a third is lost at random, as by a broken link of three.
func TestRequestsLostAtRandom(t *testing.T) {
	for _, ms := range []int{70, 750, 1500, 2000} {
		arrived := 0
		for seed := range uint64(50) {
			inBubble(t, func(t *testing.T, r *rig) {
				random := rand.New(rand.NewPCG(seed, 1))
				r.losing(time.Duration(ms)*time.Millisecond, func(int) bool { return random.IntN(3) == 0 })
				r.owe(podNames(30)...)
				if r.AwaitAll(t.Context(), r.began.Add(27*time.Second), time.Second) {
					arrived++
				}
			})
		}
		require.GreaterOrEqual(t, arrived, 45, "of 50 times, with %d ms a request", ms)
	}
}

// A server that is known to lose requests and then dies is waited for as long as three calls take,
// once.
func TestServerThatLosesRequestsAndDies(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.losing(100*time.Millisecond, func(request int) bool { return request%3 == 0 || request > 20 })
		r.owe(podNames(30)...)
		require.False(t, r.AwaitAll(t.Context(), r.began.Add(time.Hour), time.Second))
		waited := time.Since(r.began)
		require.False(t, r.AwaitAll(t.Context(), r.began.Add(time.Hour), time.Second))
		again := time.Since(r.began) - waited
		r.leave()
		require.Equal(t, r.lastTold+3600*time.Millisecond, waited, "three times 1 s, and the pauses")
		require.Equal(t, time.Second, again)
	})
}

// A server that answers and then dies, without having lost a request, is waited for 2.5 s.
func TestServerThatDies(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.losing(100*time.Millisecond, func(request int) bool { return request > 20 })
		r.owe(podNames(30)...)
		require.False(t, r.AwaitAll(t.Context(), r.began.Add(time.Hour), time.Second))
		require.Equal(t, 2700*time.Millisecond, time.Since(r.began))
	})
}

// A server that has lost a request and then becomes slow gets the time that it needs.
func TestServerThatLosesRequestsAndBecomesSlow(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.losing(100*time.Millisecond, func(request int) bool { return request == 2 })
		r.owe(podNames(5)...)
		require.True(t, r.AwaitAll(t.Context(), r.began.Add(time.Hour), time.Second))
		r.losing(3*time.Second, func(int) bool { return false })
		r.owe("slow")
		advance(9 * time.Second)
		require.Zero(t, r.Unacknowledged())
	})
}

// A late answer to an old call does not hide that a newer call was answered and one between them
// was not.
func TestLostBetweenAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.answer = func(ctx context.Context, _, pod string, n int) error {
			switch {
			case pod == "old":
				<-time.After(2 * time.Second)
			case pod == "lost" && n < 2:
				return silent(ctx, "", "", 0)
			default:
			}
			return nil
		}
		for _, name := range []string{"old", "lost", "new"} {
			r.owe(name)
			advance(500 * time.Millisecond)
		}
		require.True(t, r.AwaitAll(t.Context(), r.began.Add(time.Hour), time.Second))
		require.GreaterOrEqual(t, time.Since(r.began), 4500*time.Millisecond, "2.5 s after the last answer")
	})
}

// That a server has lost a request is forgotten after a minute.
func TestLossIsForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.losing(100*time.Millisecond, func(request int) bool { return request == 2 || request > 6 })
		r.owe(podNames(5)...)
		require.True(t, r.AwaitAll(t.Context(), r.began.Add(time.Hour), time.Second))
		advance(time.Minute)
		r.owe("late")
		began := time.Now()
		require.False(t, r.AwaitAll(t.Context(), began.Add(time.Hour), time.Second))
		require.Equal(t, 2500*time.Millisecond, time.Since(began))
	})
}

// A server that is silent for a while gets all statuses right after.
func TestOutages(t *testing.T) {
	for _, ms := range []int{1700, 5000, 8000} {
		inBubble(t, func(t *testing.T, r *rig) {
			ends := r.began.Add(time.Duration(ms) * time.Millisecond)
			r.losing(70*time.Millisecond, func(int) bool { return time.Now().Before(ends) })
			r.owe(podNames(100)...)
			advance(time.Until(ends) + 2500*time.Millisecond)
			require.Zero(t, r.Unacknowledged(), "%d ms", ms)
		})
	}
}
