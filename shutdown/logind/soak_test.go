//go:build linux

package logind_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/logindfake"
)

const (
	// soakTime is the environment variable with the duration of [TestSoak], such as "1h".
	soakTime = "KUBEGRACE_SOAK"
	// soakSeed is the environment variable with the seed that decides the order of the faults.
	soakSeed = "KUBEGRACE_SOAK_SEED"

	soakAgents = 4
	// heapBound is how many bytes larger the heap may be in the second half of the samples than in the first.
	heapBound = 512 << 10
)

// Agents on a real bus go through shutdowns, cancellations, and restarts of the bus, of logind and of
// themselves. After each round every agent holds its lock and admits pods, every kill has ended, and no
// running pod is reported as ended. Memory, goroutines and descriptors do not grow.
func TestSoak(t *testing.T) {
	lasts, err := time.ParseDuration(cmp.Or(os.Getenv(soakTime), "4s"))
	require.NoError(t, err)
	require.Positive(t, lasts, soakTime)
	seed := rand.Uint64()
	if text := os.Getenv(soakSeed); text != "" {
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("%s=%d", soakSeed, seed)
	s := &soak{t: t, rng: rand.New(rand.NewPCG(seed, 3)), host: newHost(t), counts: map[string]int{}} //nolint:gosec // it has to be repeatable
	s.host.login1.Close()                                                                             // each subtest starts its own
	for range soakAgents {
		s.agents = append(s.agents, startSoakAgent(t, s.host.source(t), memoryFolder(t)))
	}
	var samples []sample
	began := time.Now()
	for time.Since(began) < lasts || len(samples) < 3 { // requireNoLeak needs three
		t.Run(fmt.Sprintf("after %v", time.Since(began).Round(time.Second)), func(t *testing.T) {
			s.t = t
			s.startLogin1()
			s.awaitIdle()
			samples = append(samples, measure(t, time.Since(began)))
			for end := time.Now().Add(min(10*time.Second, lasts/5)); time.Now().Before(end); {
				s.runRound()
			}
			// This test kills agents that keep their lock in systemd's FD store, on a host of its own. It runs here so that
			// a leak shows in the samples too.
			t.Run("an agent dies", TestTheStoredLockOutlivesTheAgent)
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%v\n%s", s.counts, table(samples))
	requireNoLeak(t, samples)
}

// requireNoLeak checks that no round has leaked anything. The first sample is not used, because it lacks what the first
// round allocates once and for all. A timer or a signal in flight is in some samples only, but what each round leaks is
// in all later samples. So the smallest value of the second half is compared with the largest of the first half.
func requireNoLeak(t *testing.T, samples []sample) {
	t.Helper()
	firstHalf, secondHalf := samples[1:len(samples)/2+1], samples[len(samples)/2+1:]
	goroutines := func(a, b sample) int { return cmp.Compare(a.goroutines, b.goroutines) }
	descriptors := func(a, b sample) int { return cmp.Compare(a.descriptors, b.descriptors) }
	heap := func(a, b sample) int { return cmp.Compare(a.heap, b.heap) }
	require.LessOrEqual(t, slices.MinFunc(secondHalf, goroutines).goroutines, slices.MaxFunc(firstHalf, goroutines).goroutines)
	require.LessOrEqual(t, slices.MinFunc(secondHalf, descriptors).descriptors, slices.MaxFunc(firstHalf, descriptors).descriptors)
	require.Less(t, slices.MinFunc(secondHalf, heap).heap, slices.MaxFunc(firstHalf, heap).heap+heapBound)
}

// memoryFolder returns a folder in memory, or on disk if there is no /dev/shm. A disk may be busy for 10 s, and an agent
// would then return an error.
func memoryFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "soak")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// sample is the resource usage between two rounds.
type sample struct {
	at                      time.Duration
	heap                    uint64
	goroutines, descriptors int
}

// measure returns the present resource usage.
func measure(t *testing.T, at time.Duration) sample {
	t.Helper()
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // the second collection also frees what has finalizers
	runtime.ReadMemStats(&stats)
	return sample{at, stats.HeapAlloc, runtime.NumGoroutine(), openDescriptors(t)}
}

// table formats at most about fifteen of the samples, for the log of the test.
func table(samples []sample) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%8s %10s %11s %12s\n", "after", "heap KiB", "goroutines", "descriptors")
	for i, s := range samples {
		if i%max(1, len(samples)/15) == 0 || i == len(samples)-1 {
			fmt.Fprintf(&text, "%8v %10d %11d %12d\n", s.at.Round(time.Second), s.heap>>10, s.goroutines, s.descriptors)
		}
	}
	return text.String()
}

// soak is a host and its agents.
type soak struct {
	t      *testing.T // the current subtest, at whose end the fake logind ends
	rng    *rand.Rand
	host   *host
	agents []*soakAgent
	counts map[string]int
}

// startLogin1 starts a new fake logind on the bus, in place of the one that was closed. It runs until the current subtest,
// s.t, ends, or until a fault closes it.
func (s *soak) startLogin1() {
	s.host.login1 = logindfake.StartLogin1(s.t, s.host.bus.Address)
	s.host.login1.SetLimit(30 * time.Second)
	s.host.login1.SetKind([]string{"", "reboot"}[s.rng.IntN(2)])
}

// waitUpTo waits for a random time of less than most, so that a fault may come at any moment of a drain.
func (s *soak) waitUpTo(most time.Duration) { <-time.After(rand.N(most)) }

// randomAgent returns one of the agents.
func (s *soak) randomAgent() *soakAgent { return s.agents[s.rng.IntN(len(s.agents))] }

// runRound gives each agent new pods, announces a shutdown in three of four rounds, and injects one fault
// of the host or of an agent. Then it cancels the shutdown, waits until all agents are idle, and checks
// them.
func (s *soak) runRound() {
	for _, a := range s.agents {
		a.replacePods(4)
	}
	state := "idle"
	if s.rng.IntN(4) > 0 {
		state = "shutdown"
		s.host.announceShutdown()
		s.waitUpTo(600 * time.Millisecond)
	}
	harms := map[string]func(){
		"cancelled": func() {},
		"cancelled and announced again": func() {
			s.host.cancelShutdown()
			s.waitUpTo(300 * time.Millisecond)
			s.host.announceShutdown()
			s.waitUpTo(300 * time.Millisecond)
		},
		"bus restarted": func() {
			s.host.login1.Close()
			s.host.bus.Stop()
			s.waitUpTo(300 * time.Millisecond)
			s.host.bus.Start()
			s.startLogin1()
		},
		"logind restarted": func() {
			s.host.login1.Close()
			s.waitUpTo(300 * time.Millisecond)
			s.startLogin1()
		},
		"lock refused": func() {
			s.host.login1.Refuse(logindfake.Refusal{Name: "org.freedesktop.DBus.Error.AccessDenied", Text: "Permission denied"})
		},
		"agent restarted": func() { s.randomAgent().restart() },
		"to the end": func() {
			if state == "shutdown" { // until every agent has released its lock
				awaitNoProblem(s.t, func() string { return s.wrongLockCount(0) })
			}
		},
	}
	names := slices.Sorted(maps.Keys(harms)) // in a fixed order, so that the seed decides
	name := names[s.rng.IntN(len(names))]
	harms[name]()
	s.counts[state+", "+name]++
	s.host.cancelShutdown()
	s.awaitIdle()
	for _, a := range s.agents {
		a.checkAll(s.t)
	}
}

// awaitIdle waits until each agent holds the lock, admits pods and has no kill in progress.
func (s *soak) awaitIdle() {
	awaitNoProblem(s.t, func() string {
		for i, a := range s.agents {
			if why := a.unfinishedWork(); why != "" {
				return fmt.Sprintf("agent %d: %s", i, why)
			}
		}
		return s.wrongLockCount(len(s.agents))
	})
}

// wrongLockCount says how many locks are held, if not as many as wanted; otherwise "".
func (s *soak) wrongLockCount(want int) string {
	if held := len(s.host.login1.Held()); held != want {
		return fmt.Sprintf("%d locks are held, not %d", held, want)
	}
	return ""
}

// awaitNoProblem waits until problem returns "". On a timeout it fails with the problem's text.
func awaitNoProblem(t *testing.T, problem func() string) {
	t.Helper()
	for end := time.Now().Add(3 * testTimeout); problem() != ""; {
		require.True(t, time.Now().Before(end), problem())
		<-time.After(5 * time.Millisecond)
	}
}
