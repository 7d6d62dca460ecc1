//go:build linux

package apistatus_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/atomicfile"
)

const (
	// crashKills says how many agents are killed; without it 500 are, and 50 in short mode.
	crashKills = "KUBEGRACE_TEST_KILLS"
	// crashSeed says with which seed, to see the same moments again.
	crashSeed = "KUBEGRACE_TEST_SEED"
	// nodesAtOnce is how many nodes are shut down at the same time.
	nodesAtOnce = 12
)

// TestKilledAgents kills agents at any moment of a shutdown, one after the other on the
// same node, whose pods live on. The last agent is left alone: by its end the API server
// knows what had become of the pods, and nothing that has not.
func TestKilledAgents(t *testing.T) {
	kills, seed := 500, rand.Uint64()
	if testing.Short() {
		kills = 50
	}
	var err error
	if text := os.Getenv(crashKills); text != "" {
		kills, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	if text := os.Getenv(crashSeed); text != "" {
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("%d kills with %s=%d", kills, crashSeed, seed)
	server, _ := serve(t)
	var (
		left, nodes, signals atomic.Int64
		working              sync.WaitGroup
		mu                   sync.Mutex // guards all below
		late                 []time.Duration
		wrong                []error
		ways                 = map[string]int{}
	)
	left.Store(int64(kills))
	for range nodesAtOnce {
		working.Go(func() {
			for left.Load() > 0 {
				number := nodes.Add(1)
				n := &crashedNode{t: t, number: int(number), rng: rand.New(rand.NewPCG(seed, uint64(number))), server: server, owed: map[string]bool{}}
				n.way = []string{goesOn, isCancelled, isRebooted}[n.rng.IntN(3)]
				killed := 1 + n.rng.IntN(8)
				left.Add(int64(-killed))
				err := n.run(killed)
				signals.Add(int64(len(n.former) + len(n.signals)))
				mu.Lock()
				late, ways[n.way] = append(late, n.late...), ways[n.way]+1
				if err = errors.Join(append(n.wrong, err)...); err != nil {
					wrong = append(wrong, fmt.Errorf("node %d (%s): %w", number, n.way, err))
				}
				mu.Unlock()
			}
		})
	}
	lag := worstLag(t, &working)
	slices.Sort(late)
	t.Logf("%d nodes %v, %d kills of pods; of those not on the disk when their agent was killed the oldest was %v old; this machine was up to %v late itself", nodes.Load(), ways, signals.Load(), slices.Max(append(late, 0)), lag)
	require.NoError(t, errors.Join(wrong...))
	tooLate := slices.IndexFunc(late, func(age time.Duration) bool { return age > 100*time.Millisecond+lag })
	require.Equal(t, -1, tooLate, "kills that were not on the disk after so long: %v", late)
}

// worstLag waits for the others, and gives how late a timer and a write were at the worst
// meanwhile, as those of an agent are.
func worstLag(t *testing.T, others *sync.WaitGroup) (worst time.Duration) {
	t.Helper()
	const podLag = 50 * time.Millisecond
	over := make(chan struct{})
	go func() {
		defer close(over)
		others.Wait()
	}()
	path := filepath.Join(t.TempDir(), "file")
	for {
		began := time.Now()
		select {
		case <-time.After(podLag):
		case <-over:
			return worst
		}
		require.NoError(t, atomicfile.Write(path, []byte("text")))
		worst = max(worst, time.Since(began)-podLag)
	}
}

// crash is how long after its start, or after it is ready, an agent is killed.
type crash struct {
	ready bool
	after time.Duration
}

func (n *crashedNode) nextCrash(first bool) crash {
	within := 400 * time.Millisecond
	if first {
		within = 1200 * time.Millisecond
	}
	return crash{ready: n.rng.IntN(4) > 0, after: time.Duration(n.rng.Int64N(int64(within)))}
}

// What becomes of the node's shutdown in the end.
const (
	goesOn      = "goes on"
	isCancelled = "is cancelled while no agent runs"
	isRebooted  = "is another boot's"
)

// run shuts the node down and kills some agents, then lets one do its work.
func (n *crashedNode) run(kills int) error {
	if err := n.prepare(); err != nil {
		return err
	}
	defer func() { n.proxy.Die() }()
	turn := 1 + n.rng.IntN(kills)
	for i := range kills + 1 {
		if i == turn {
			if err := n.turn(); err != nil {
				return err
			}
		}
		if i > 0 {
			n.owe()
		}
		a, err := n.start(i == 0)
		if err != nil {
			return err
		}
		if i == kills {
			return errors.Join(n.finish(a), a.kill())
		}
		at, err := a.crash(n.nextCrash(i == 0))
		if err == nil {
			n.orders.Runs = append(n.orders.Runs, a.runs...)
			err = n.look(at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pods of all sorts: two that end at once, others that take their time or all of it, one
// that nobody can kill, and a static one.
func (n *crashedNode) makePods() []*v1.Pod {
	var pods []*v1.Pod
	for i, takes := range []string{"0s", "1ms", "150ms", "400ms", "700ms", "1h", "20ms", "1h"} {
		pod := running(fmt.Sprintf("web-%d-%d", n.number, i))
		priority, grace := int32(i%2)*1000, int64(30)
		pod.Spec.Priority, pod.Spec.TerminationGracePeriodSeconds = &priority, &grace
		pod.Annotations = map[string]string{takesFor: takes}
		switch i {
		case 6:
			pod.Annotations[v1.MirrorPodAnnotationKey] = "hash"
		case 7:
			pod.Annotations[deaf] = "true"
		}
		pods = append(pods, pod)
	}
	return pods
}
