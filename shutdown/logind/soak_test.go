//go:build linux

package logind_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/bustest"
)

const (
	// soakTime is the variable that says how long [TestSoak] lasts, as a duration of Go.
	soakTime = "KUBEGRACE_SOAK"
	// soakSeed is the one that has its faults come in the order of another run.
	soakSeed = "KUBEGRACE_SOAK_SEED"

	soakAgents = 4
	// heapBound is by how much the heap may have grown from the first fifth of a soak on.
	heapBound = 512 << 10
)

// Agents on a real bus, through shutdowns, cancellations, restarts of the bus, of logind and
// of their own: whenever it is calm each holds its host and admits pods, each kill has ended,
// and nothing is said to have ended that runs. Memory, goroutines and descriptors do not grow.
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
	s.host.login1.Close()
	for range soakAgents {
		s.agents = append(s.agents, startSoakAgent(t, s.host.source(t), inMemory(t)))
	}
	var samples []sample
	began := time.Now()
	for time.Since(began) < lasts || len(samples) < 3 {
		t.Run(fmt.Sprintf("after %v", time.Since(began).Round(time.Second)), func(t *testing.T) {
			s.t = t
			s.login1()
			s.calm()
			samples = append(samples, measure(t, time.Since(began)))
			for end := time.Now().Add(min(10*time.Second, lasts/5)); time.Now().Before(end); {
				s.round()
			}
			t.Run("an agent dies", TestDeadAgentDoesNotEndTheDelay)
		})
		if t.Failed() {
			return
		}
	}
	first := samples[max(1, len(samples)/5)] // what is made once has been made by then
	last := samples[len(samples)-1]
	t.Logf("%v\n%s", s.counts, table(samples))
	require.LessOrEqual(t, last.goroutines, first.goroutines)
	require.LessOrEqual(t, last.descriptors, first.descriptors)
	require.Less(t, last.heap, first.heap+heapBound)
}

// inMemory is a folder in memory, where there is one: an agent that ends while a disk is busy
// for ten seconds says so, which is right, but is not what is tested.
func inMemory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "soak")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// sample is what is in use at some time of a soak, while it is calm.
type sample struct {
	at                      time.Duration
	heap                    uint64
	goroutines, descriptors int
}

func measure(t *testing.T, at time.Duration) sample {
	t.Helper()
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // what has finalizers goes with the second
	runtime.ReadMemStats(&stats)
	return sample{at, stats.HeapAlloc, runtime.NumGoroutine(), openDescriptors(t)}
}

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

// soak is a host, and agents that share it.
type soak struct {
	t      *testing.T // of the logind of now
	rng    *rand.Rand
	host   *host
	agents []*soakAgent
	counts map[string]int
}

// login1 starts another logind, which lasts as long as its test.
func (s *soak) login1() {
	s.host.login1 = bustest.StartLogin1(s.t, s.host.bus.Address)
	s.host.login1.SetLimit(30 * time.Second)
	s.host.login1.SetKind([]string{"", "reboot"}[s.rng.IntN(2)])
}

func (s *soak) pass(most time.Duration) { <-time.After(rand.N(most)) }

// one is some agent.
func (s *soak) one() *soakAgent { return s.agents[s.rng.IntN(len(s.agents))] }

// round harms the host, or the agents, within a shutdown or outside of one.
func (s *soak) round() {
	for _, a := range s.agents {
		a.populate(4)
	}
	text := "idle"
	if s.rng.IntN(4) > 0 {
		text = "shutdown"
		s.host.login1.Prepare(true)
		s.pass(600 * time.Millisecond)
	}
	harms := map[string]func(){
		"cancelled": func() {},
		"cancelled and announced again": func() {
			s.host.login1.Prepare(false)
			s.pass(300 * time.Millisecond)
			s.host.login1.Prepare(true)
			s.pass(300 * time.Millisecond)
		},
		"bus restarted": func() {
			s.host.login1.Close()
			s.host.bus.Stop()
			s.pass(300 * time.Millisecond)
			s.host.bus.Start()
			s.login1()
		},
		"logind restarted": func() {
			s.host.login1.Close()
			s.pass(300 * time.Millisecond)
			s.login1()
		},
		"lock refused": func() {
			s.host.login1.Refuse(bustest.Refusal{Name: "org.freedesktop.DBus.Error.AccessDenied", Text: "Permission denied"})
		},
		"agent restarted": func() { s.one().restart() },
		"to the end": func() {
			if text == "shutdown" {
				eventually(s.t, func() string { return still("held", len(s.host.login1.Held())) })
			}
		},
	}
	names := []string{"agent restarted", "bus restarted", "cancelled", "cancelled and announced again", "lock refused", "logind restarted", "to the end"}
	name := names[s.rng.IntN(len(names))]
	harms[name]()
	s.counts[text+", "+name]++
	s.host.login1.Prepare(false)
	s.calm()
	for _, a := range s.agents {
		a.check(s.t)
	}
}

// calm waits until each agent holds the host, admits pods and kills none.
func (s *soak) calm() {
	eventually(s.t, func() string {
		for i, a := range s.agents {
			if why := a.restless(); why != "" {
				return fmt.Sprintf("agent %d: %s", i, why)
			}
		}
		if held := len(s.host.login1.Held()); held != len(s.agents) {
			return still("held", held)
		}
		return ""
	})
}

// still says how many locks there are; "": none.
func still(what string, n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d locks are %s", n, what)
}

// eventually waits until there is nothing more to wait for.
func eventually(t *testing.T, why func() string) {
	t.Helper()
	for end := time.Now().Add(3 * soon); why() != ""; {
		require.True(t, time.Now().Before(end), why())
		<-time.After(5 * time.Millisecond)
	}
}
