//go:build go1.25

package outbox_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/call"
)

// cluster is what an API server has, and what must never happen at one.
type cluster struct {
	mu      sync.Mutex
	flying  map[string]int // calls for the pod's readiness, by "mark" or "restore" and pod
	marked  map[string]bool
	final   map[string]int
	wrong   []string
	healthy bool
	random  *rand.Rand
}

func (c *cluster) answer(ctx context.Context, what, pod string, _ int) error {
	c.begins(what, pod)
	defer c.ends(what, pod)
	takes, fails := c.draw()
	if takes >= 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	} else if <-ctx.Done(); takes == -1 {
		return context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case fails == 1:
		return errRefused
	case fails == 2:
		panic("of a reporter")
	case what == "status":
		c.final[pod]++
	default:
		c.marked[pod] = what == "mark"
	}
	if fails == 3 {
		return errRefused // the server has it, and nobody knows
	}
	return nil
}

// draw returns how long a call takes, -1 if it hangs until its context ends, -2 if it then
// succeeds, and how it fails.
func (c *cluster) draw() (takes time.Duration, fails int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.healthy {
		return 0, 0
	}
	takes = time.Duration(c.random.IntN(1000)) * time.Millisecond
	if n := c.random.IntN(10); n < 2 {
		takes = time.Duration(-1 - n)
	}
	return takes, c.random.IntN(8)
}

func (c *cluster) begins(what, pod string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flying[what+" "+pod]++
	if c.flying["mark "+pod]+c.flying["restore "+pod] > 1 {
		c.wrong = append(c.wrong, "a mark and a restoration of "+pod+" at once")
	}
	if c.flying[what+" "+pod] > 1 {
		c.wrong = append(c.wrong, "two calls of "+what+" for "+pod+" at once")
	}
}

func (c *cluster) ends(what, pod string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flying[what+" "+pod]--
}

// Whatever is called in any order, from several goroutines: when the server answers again, each
// status that was owed has arrived, no pod that lives on is marked, and no debt is left.
func TestEverythingAtRandom(t *testing.T) {
	for seed := range uint64(300) {
		inBubble(t, func(t *testing.T, r *rig) {
			random := rand.New(rand.NewPCG(seed, 2))
			c := &cluster{flying: map[string]int{}, marked: map[string]bool{}, final: map[string]int{}, random: rand.New(rand.NewPCG(seed, 3))}
			r.answer = c.answer
			leaves := []func() *call.Group{r.leave}
			var groups []*call.Group
			ended := map[string]bool{}
			var waits sync.WaitGroup
			for step := range 150 {
				p := pod(fmt.Sprint("pod-", random.IntN(25)))
				switch n := random.IntN(20); {
				case n < 5:
					if ended[p.Name] = true; random.IntN(2) == 0 {
						p = staticPod(p.Name + " static")
					}
					waits.Go(func() { r.Owe(p, nil, r.tells(p.Name)) })
				case n < 10 && !ended[p.Name]:
					r.Mark(p, time.Now().Add(time.Duration(random.IntN(3))*time.Second))
				case n == 10:
					waits.Go(func() { r.Withdraw(staticPod(p.Name + " static")) })
				case n == 11:
					waits.Go(r.store)
				case n == 12:
					r.Suspend()
				case n == 13:
					r.Restore(func(pod *v1.Pod) bool { return !ended[pod.Name] })
				case n == 14 && !ended[p.Name]:
					r.RestoreMarked([]*v1.Pod{p})
				case n == 15:
					waits.Go(func() { r.AwaitAll(t.Context(), time.Now().Add(time.Second), time.Second) })
				case n == 16:
					r.Publish(step)
				case n == 17 && len(leaves) < 3:
					leaves = append(leaves, r.Open(quiet(t)))
				case n == 18 && len(leaves) > 0:
					groups = append(groups, leaves[0]())
					leaves = leaves[1:]
				default:
					advance(time.Duration(random.IntN(2000)) * time.Millisecond)
				}
			}
			for _, leave := range leaves {
				groups = append(groups, leave())
			}
			waits.Wait()
			c.mu.Lock()
			c.healthy = true
			c.mu.Unlock()
			r.leave = r.Open(quiet(t))
			last := r.Publish("last")
			r.Restore(func(pod *v1.Pod) bool { return !ended[pod.Name] })
			advance(time.Minute)
			for _, group := range groups {
				if group != nil {
					require.Empty(t, group.Wait(nil))
				}
			}
			require.Empty(t, c.wrong, "seed %d", seed)
			require.Zero(t, r.Unacknowledged(), "seed %d", seed)
			require.Empty(t, r.record(), "seed %d", seed)
			require.NoError(t, last.Await(t.Context(), time.Now()))
			r.store()
			for name := range ended {
				require.False(t, r.Owes(pod(name)))
			}
			for name, marked := range c.marked {
				require.False(t, marked && !ended[name], "seed %d: %s", seed, name)
			}
			told := map[string]bool{}
			for _, name := range r.acknowledged() {
				told[name] = true
				require.True(t, c.final[name] > 0 || strings.HasSuffix(name, "static"), "seed %d: %s was told and has not arrived", seed, name)
			}
			for name := range ended {
				require.True(t, told[name] || told[name+" static"], "seed %d: %s", seed, name)
			}
		})
	}
}
