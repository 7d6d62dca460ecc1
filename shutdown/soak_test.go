//go:build go1.25

package shutdown_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/need"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// soakSeed is the environment variable with the seed of the random steps. The order in which
// goroutines run at the same moment does not depend on it.
const soakSeed = "KUBEGRACE_SOAK_SEED"

// heapBound is by how many bytes the heap may differ between two hours.
const heapBound = 128 << 10

// A manager and a terminator go through a day of shutdowns, cancellations, lost sessions and
// outages of the API server, some of them at the same moment. After each round of these the
// host is held, pods are admitted, each kill has ended, each pod had its grace period, no
// running pod is reported as ended, and the reports and the API server have all pods. In the
// first half of the day agents are restarted and the host is booted; in the second half there
// is one agent. Neither the heap nor the number of goroutines grows.
func TestADayOfShutdowns(t *testing.T) {
	seed := rand.Uint64()
	if text := os.Getenv(soakSeed); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	hours := 24
	if need.Less(t, "18 of 24 hours of shutdowns in virtual time") {
		hours = 6
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s=%d go test -race -run '^TestADayOfShutdowns$' ./shutdown", soakSeed, seed)
		}
	})
	dir := memoryFolder(t)
	synctest.Test(t, func(t *testing.T) { newSoak(t, seed, dir).runDay(hours) })
}

// memoryFolder returns a folder in memory, or on disk if there is no /dev/shm. The test
// writes and syncs thousands of files, and the speed of a disk is not its subject.
func memoryFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "soak")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// soak is a node and the agent that runs on it.
type soak struct {
	*soakWorld

	t              *testing.T
	dir            string
	host           *shutdowntest.Host
	boot           *boot
	boots          int
	idleGoroutines int  // goroutines in the bubble when no agent runs
	mayRestart     bool // steps may restart the agent
	sameAgent      bool // the agent was not restarted in this round
	stepCounts     map[string]int
	steps          []string // of this round

	m          *shutdown.Manager
	terminator *lifecycle.Terminator
	killer     shutdown.PodKillerFunc
	endRun     func() error
	deletions  sync.WaitGroup // kills of deleted pods, which the agent does without its manager
}

func newSoak(t *testing.T, seed uint64, dir string) *soak {
	t.Helper()
	w := &soakWorld{rng: rand.New(rand.NewPCG(seed, 2)), rt: lifecycletest.NewRuntime(), pods: map[types.UID]*soakPod{}} //nolint:gosec // it has to be repeatable
	_, idle := goroutines()
	return &soak{
		soakWorld: w, t: t, dir: dir, host: &shutdowntest.Host{}, boot: &boot{id: "boot-0", began: time.Now()},
		idleGoroutines: idle, stepCounts: map[string]int{},
	}
}

// runDay runs rounds for so many hours.
func (s *soak) runDay(hours int) {
	t := s.t
	defer func() {
		if t.Failed() {
			t.Log(strings.Join(s.steps, "\n"))
			_ = s.endRun() // the test has failed already
			_ = s.terminator.Close(t.Context())
		}
	}()
	began := time.Now()
	heaps := make([]uint64, hours+1) // by the number of hours that are over
	s.startAgent()
	for hour := range hours {
		s.mayRestart = hour < hours/2
		for time.Since(began) < time.Duration(hour+1)*time.Hour {
			s.runRound()
		}
		s.replaceHostAndRuntime()
		heaps[hour+1] = heapInUse()
	}
	s.stopAgent()
	t.Logf("%v; heap by the hour: %v KiB", s.stepCounts, kib(heaps[1:]))
	require.InDelta(t, heaps[2], heaps[hours/2], heapBound, "with agents that come and go")
	require.InDelta(t, heaps[hours/2+1], heaps[hours], heapBound, "of one agent")
	require.InDelta(t, heaps[2], heaps[hours], heapBound, "over the day")
}

// heapInUse returns the bytes of live objects on the heap.
func heapInUse() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // objects with finalizers are freed by the second collection
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func kib(sizes []uint64) []uint64 {
	all := make([]uint64, len(sizes))
	for i, size := range sizes {
		all[i] = size >> 10
	}
	return all
}

// runRound makes new pods, takes random steps, ends all faults, and checks the node.
func (s *soak) runRound() {
	s.stepCounts["rounds"]++
	s.steps, s.sameAgent, s.wantFullGrace = nil, true, true
	began := time.Now()
	for range 3 + s.randomInt(8) {
		s.newPod("", "")
	}
	for _, name := range []string{"static-1", "static-2"} { // the same UID in each round
		if s.randomInt(2) == 0 {
			s.newPod(name, types.UID("uid-"+name))
		}
	}
	for range 6 + s.randomInt(10) {
		text := s.randomStep()
		s.stepCounts[strings.Fields(text)[0]]++
		s.steps = append(s.steps, fmt.Sprintf("%8v %s", time.Since(began), text))
		if s.randomInt(5) > 0 { // otherwise the next step comes at the same moment
			synctest.Wait()
		}
		s.checkInvariants()
	}
	s.repairAndWait()
	s.checkAll()
	s.forgetPods()
	<-time.After(s.randomDuration(5 * time.Minute))
}

// checkInvariants fails if anything went wrong so far.
func (s *soak) checkInvariants() {
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Empty(s.t, s.violations)
	require.NoError(s.t, s.host.Err())
}

// repairAndWait ends all faults, cancels the shutdown, and waits until no work is unfinished.
func (s *soak) repairAndWait() {
	synctest.Wait()
	s.mu.Lock()
	s.server = serverAnswers
	s.mu.Unlock()
	s.host.Cancel()
	synctest.Wait()
	for waited := time.Duration(0); waited < 15*time.Second || s.unfinishedWork() != ""; waited += 5 * time.Second {
		require.Less(s.t, waited, 10*time.Minute, "still unfinished: %v", s.unfinishedWork())
		<-time.After(5 * time.Second) // failed requests are repeated meanwhile
		synctest.Wait()
	}
}

// unfinishedWork names something that is not finished; "" if there is nothing.
func (s *soak) unfinishedWork() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pods {
		switch {
		case p.running > 0:
			return "the kill of pod " + p.pod.Name
		case s.mustBeFlushed(p) && !p.flushed:
			return "the final status of pod " + p.pod.Name
		}
	}
	if n := s.m.UnendedKills(); n > 0 {
		return fmt.Sprint(n, " drains")
	}
	if s.publishedState.ShuttingDown {
		return "the published state of the node"
	}
	return ""
}

// mustBeFlushed reports whether an agent has to send the final status of a pod: a shutdown has
// ended the pod, and an agent knows that. The caller holds the mutex.
func (s *soak) mustBeFlushed(p *soakPod) bool {
	return !p.ended.IsZero() && !p.endUnknown && p.pod.DeletionTimestamp == nil
}

// checkAll checks what must hold when no work is unfinished.
func (s *soak) checkAll() {
	t := s.t
	s.checkInvariants()
	require.NoError(t, s.m.ShutdownStatus())
	require.True(t, s.m.Admit(nil).Admit)
	require.Equal(t, 1, s.host.Held(), "the host is held again")
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := map[types.UID]bool{}
	for _, report := range s.reports {
		for _, pod := range report.Pods {
			if !pod.Ended.IsZero() {
				ended[pod.UID] = true
			}
		}
	}
	for uid, p := range s.pods {
		if s.sameAgent && s.mustBeFlushed(p) {
			require.True(t, ended[uid], "pod %s has ended, but not by any report", p.pod.Name)
		}
	}
	for _, signal := range s.rt.Signals() {
		if signal.Signal == v1.SIGKILL {
			s.checkKill(signal)
		}
	}
}

// checkKill fails if a container was sent SIGKILL before the grace period of its pod was over.
// The caller holds the mutex.
func (s *soak) checkKill(signal lifecycletest.Signal) {
	uid, _, _ := strings.Cut(signal.ID, "/")
	p := s.pods[types.UID(uid)]
	if p == nil || !slices.Contains(slices.Collect(maps.Values(p.containerIDs)), signal.ID) {
		return // of an earlier round
	}
	var until time.Time
	for _, kill := range p.kills {
		end := kill.at.Add(time.Duration(max(kill.seconds, 1)) * time.Second)
		if !kill.at.After(signal.At) && (until.IsZero() || end.Before(until)) {
			until = end
		}
	}
	require.False(s.t, until.IsZero(), "container %s was killed, and its pod was not", signal.ID)
	require.False(s.t, signal.At.Before(until.Add(-time.Second)), "container %s was killed %v before the end of its grace", signal.ID, until.Sub(signal.At))
}

// forgetPods removes all pods from the node and makes the terminator forget them.
func (s *soak) forgetPods() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid, p := range s.pods {
		for _, id := range p.containerIDs {
			s.rt.Remove(id)
		}
		s.terminator.ForgetPod(uid)
	}
	clear(s.pods)
	s.listed, s.reports = nil, nil
}

// replaceHostAndRuntime replaces the host and the runtime by new ones, whose records of calls
// are empty, so that the heap can be compared.
func (s *soak) replaceHostAndRuntime() {
	before := s.host
	s.mu.Lock()
	s.host, s.rt = &shutdowntest.Host{}, lifecycletest.NewRuntime()
	s.mu.Unlock()
	before.Lose()
	<-time.After(5 * time.Second)
	synctest.Wait()
	require.Zero(s.t, before.Held(), "the lock of the old host is closed once the new one is held")
	require.Equal(s.t, 1, s.host.Held())
}
