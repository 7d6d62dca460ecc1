//go:build linux && go1.25

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
	// crashKills is the environment variable with the number of agents to kill. The default is 50.
	crashKills = "KUBEGRACE_TEST_KILLS"
	// crashSeed is the environment variable with the seed of the random choices.
	crashSeed = "KUBEGRACE_TEST_SEED"
	// nodesAtOnce is how many nodes shut down concurrently.
	nodesAtOnce = 12
)

// Agents are killed at random times during a shutdown, one after the other on the same node; the pods
// run on. When the last agent of a node, which is not killed, has finished, the API server has the
// final statuses of exactly the pods that have ended.
func TestFinalStatusesSurviveKilledAgents(t *testing.T) {
	kills, seed := 50, rand.Uint64()
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
		left, nodes, signals atomic.Int64 // agents that are still to be killed, nodes that were begun, and signalled pods
		working              sync.WaitGroup
		mu                   sync.Mutex         // guards all below
		late                 []time.Duration    // the ages of signals that were not on disk when their agent was killed
		wrong                []error            // what the nodes have found
		ways                 = map[string]int{} // how many shutdowns ended in each way
	)
	left.Store(int64(kills))
	for range nodesAtOnce {
		working.Go(func() {
			for left.Load() > 0 {
				number := nodes.Add(1)
				n := &crashedNode{t: t, number: int(number), rng: rand.New(rand.NewPCG(seed, uint64(number))), server: server, mustBeFlushed: map[string]bool{}}
				n.ending = []string{goesOn, isCancelled, isRebooted}[n.rng.IntN(3)]
				killed := 1 + n.rng.IntN(8)
				left.Add(int64(-killed))
				err := n.run(killed)
				signals.Add(int64(len(n.signalsOfPreviousBoot) + len(n.signals)))
				mu.Lock()
				late, ways[n.ending] = append(late, n.unstoredAges...), ways[n.ending]+1
				if err = errors.Join(append(n.violations, err)...); err != nil {
					wrong = append(wrong, fmt.Errorf("node %d (%s): %w", number, n.ending, err))
				}
				mu.Unlock()
			}
		})
	}
	lag := worstLag(t, &working)
	slices.Sort(late)
	t.Logf("%d nodes %v, %d signals; the oldest one missing on disk when its agent was killed was %v old; this machine was up to %v late", nodes.Load(), ways, signals.Load(), slices.Max(append(late, 0)), lag)
	require.NoError(t, errors.Join(wrong...))
	tooLate := slices.IndexFunc(late, func(age time.Duration) bool { return age > 100*time.Millisecond+2*lag }) // the agent's timer and its write can both be late
	require.Equal(t, -1, tooLate, "ages of signals that were not on disk: %v", late)
}

// worstLag waits for others and returns the longest delay of a timer and a file write meanwhile: an
// agent on this machine is delayed as much.
func worstLag(t *testing.T, others *sync.WaitGroup) (worst time.Duration) {
	t.Helper()
	const interval = 50 * time.Millisecond
	over := make(chan struct{})
	go func() {
		defer close(over)
		others.Wait()
	}()
	path := filepath.Join(t.TempDir(), "file")
	for {
		began := time.Now()
		select {
		case <-time.After(interval):
		case <-over:
			return worst
		}
		require.NoError(t, atomicfile.Write(path, []byte("text")))
		worst = max(worst, time.Since(began)-interval)
	}
}

// crash says when to kill an agent: a time after its start, or after it is ready.
type crash struct {
	ready bool
	after time.Duration
}

// nextCrash draws when the next agent is killed. The first agent, which begins the shutdown, lives longer, so that it
// has begun to kill pods.
func (n *crashedNode) nextCrash(first bool) crash {
	within := 400 * time.Millisecond
	if first {
		within = 1200 * time.Millisecond
	}
	return crash{ready: n.rng.IntN(4) > 0, after: time.Duration(n.rng.Int64N(int64(within)))}
}

// How the shutdown of a node ends.
const (
	goesOn      = "goes on"
	isCancelled = "is cancelled while no agent runs"
	isRebooted  = "ends with a reboot"
)

// run shuts the node down, kills some agents, and lets the last one finish.
func (n *crashedNode) run(kills int) error {
	if err := n.prepare(); err != nil {
		return err
	}
	defer func() { n.proxy.Die() }()
	endAt := 1 + n.rng.IntN(kills)
	for i := range kills + 1 {
		if i == endAt {
			if err := n.endShutdown(); err != nil {
				return err
			}
		}
		if i > 0 {
			n.recordUnacknowledged()
		}
		a, err := n.start(i == 0)
		if err != nil {
			return err
		}
		if i == kills {
			return errors.Join(n.finishLastAgent(a), a.kill())
		}
		at, err := a.crash(n.nextCrash(i == 0))
		if err == nil {
			n.config.StartedPods = append(n.config.StartedPods, a.startedPods...)
			err = n.readAfterCrash(at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// makePods returns pods that end at once, later or only when killed, a static pod, and a pod that
// cannot be killed.
func (n *crashedNode) makePods() []*v1.Pod {
	var pods []*v1.Pod
	for i, takes := range []string{"0s", "1ms", "150ms", "400ms", "700ms", "1h", "20ms", "1h"} {
		pod := running(fmt.Sprintf("web-%d-%d", n.number, i))
		priority, grace := int32(i%2)*1000, int64(30)
		pod.Spec.Priority, pod.Spec.TerminationGracePeriodSeconds = &priority, &grace
		pod.Annotations = map[string]string{endsAfter: takes}
		switch i {
		case 6: // the static pod
			pod.Annotations[v1.MirrorPodAnnotationKey] = "hash"
		case 7: // the pod that cannot be killed
			pod.Annotations[ignoresGrace] = "true"
		}
		pods = append(pods, pod)
	}
	return pods
}
