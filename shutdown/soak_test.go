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

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// soakSeed is the variable that has a day go by another seed. What goroutines do at the
// same moment is not in its hands.
const soakSeed = "KUBEGRACE_SOAK_SEED"

// heapBound is by how much the heap of one hour may differ from that of another.
const heapBound = 128 << 10

// Through a day of shutdowns, cancellations, reconnects and outages of the API server, one
// after the other and at once, over a manager and a terminator: whenever it is calm again the
// host is held and pods are admitted, each kill has ended, each pod had its grace, nothing is
// said to have ended that runs, and the reports and the API server have all pods. In the
// first half of the day agents come and go, and the host is booted; in the second there is
// one agent. Neither memory nor goroutines grow.
func TestADayOfShutdowns(t *testing.T) {
	seed := rand.Uint64()
	if text := os.Getenv(soakSeed); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	hours := 24
	if testing.Short() {
		hours = 6
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s=%d go test -race -run '^TestADayOfShutdowns$' ./shutdown", soakSeed, seed)
		}
	})
	dir := inMemory(t)
	synctest.Test(t, func(t *testing.T) { newSoak(t, seed, dir).run(hours) })
}

// inMemory is a folder in memory, where there is one: thousands of writes that are synced are
// not what is tested.
func inMemory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "soak")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// soak is a node, and the agent that runs on it now.
type soak struct {
	*soakWorld

	t        *testing.T
	dir      string
	host     *shutdowntest.Host
	boot     *boot
	boots    int
	idle     int // goroutines without an agent
	restarts bool
	whole    bool // no agent was restarted in this round
	counts   map[string]int
	steps    []string // of this round

	m          *shutdown.Manager
	terminator *lifecycle.Terminator
	killer     shutdown.PodKillerFunc
	end        func() error
	deletions  sync.WaitGroup // that the agent does beside its manager
}

func newSoak(t *testing.T, seed uint64, dir string) *soak {
	t.Helper()
	w := &soakWorld{rng: rand.New(rand.NewPCG(seed, 2)), rt: lifecycletest.NewRuntime(), pods: map[types.UID]*soakPod{}} //nolint:gosec // it has to be repeatable
	_, idle := goroutines()
	return &soak{
		soakWorld: w, t: t, dir: dir, host: &shutdowntest.Host{}, boot: &boot{id: "boot-0", began: time.Now()},
		idle: idle, counts: map[string]int{},
	}
}

// run is the day.
func (s *soak) run(hours int) {
	t := s.t
	defer func() {
		if t.Failed() {
			t.Log(strings.Join(s.steps, "\n"))
			_ = s.end() // the test has failed already
			_ = s.terminator.Close(t.Context())
		}
	}()
	began := time.Now()
	heaps := make([]uint64, hours+1) // by the hours that are over
	s.start()
	for hour := range hours {
		s.restarts = hour < hours/2
		for time.Since(began) < time.Duration(hour+1)*time.Hour {
			s.round()
		}
		s.renew()
		heaps[hour+1] = heap()
	}
	s.stop()
	t.Logf("%v; heap by the hour: %v KiB", s.counts, kib(heaps[1:]))
	require.InDelta(t, heaps[2], heaps[hours/2], heapBound, "with agents that come and go")
	require.InDelta(t, heaps[hours/2+1], heaps[hours], heapBound, "of one agent")
	require.InDelta(t, heaps[2], heaps[hours], heapBound, "over the day")
}

// heap is what is in use of it.
func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // what has finalizers goes with the second
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

// round is some minutes of faults, and the calm after them.
func (s *soak) round() {
	s.counts["rounds"]++
	s.steps, s.whole, s.full = nil, true, true
	began := time.Now()
	for range 3 + s.pick(8) {
		s.newPod("", "")
	}
	for _, name := range []string{"static-1", "static-2"} { // the same UID in each round
		if s.pick(2) == 0 {
			s.newPod(name, types.UID("uid-"+name))
		}
	}
	for range 6 + s.pick(10) {
		text := s.step()
		s.counts[strings.Fields(text)[0]]++
		s.steps = append(s.steps, fmt.Sprintf("%8v %s", time.Since(began), text))
		if s.pick(5) > 0 { // else the next step comes at the same moment
			synctest.Wait()
		}
		s.look()
	}
	s.calm()
	s.check()
	s.forget()
	<-time.After(s.upTo(5 * time.Minute))
}

// look fails on what was done wrong so far.
func (s *soak) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Empty(s.t, s.wrong)
	require.NoError(s.t, s.host.Err())
}

// calm mends all that is broken, takes the shutdown back, and waits for what goes on.
func (s *soak) calm() {
	synctest.Wait()
	s.mu.Lock()
	s.server = serverAnswers
	s.mu.Unlock()
	s.host.Cancel()
	synctest.Wait()
	for waited := time.Duration(0); waited < 15*time.Second || s.restless() != ""; waited += 5 * time.Second {
		require.Less(s.t, waited, 10*time.Minute, "it does not come to rest: %v", s.restless())
		<-time.After(5 * time.Second) // what was refused is tried again meanwhile
		synctest.Wait()
	}
}

// restless says what goes on.
func (s *soak) restless() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pods {
		switch {
		case p.running > 0:
			return "the kill of pod " + p.pod.Name
		case s.isToBeTold(p) && !p.told:
			return "the final status of pod " + p.pod.Name
		}
	}
	if n := s.m.EarlierDrains(); n > 0 {
		return fmt.Sprint(n, " drains")
	}
	if s.said.ShuttingDown {
		return "what is said of the node"
	}
	return ""
}

// isToBeTold tells whether the API server is to have the final status of a pod: a shutdown has
// ended it, and an agent knows. The mutex is held.
func (s *soak) isToBeTold(p *soakPod) bool {
	return !p.ended.IsZero() && !p.lost && p.pod.DeletionTimestamp == nil
}

// check looks at what has to be so when all is calm.
func (s *soak) check() {
	t := s.t
	s.look()
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
		if s.whole && s.isToBeTold(p) {
			require.True(t, ended[uid], "pod %s has ended, and is in no report", p.pod.Name)
		}
	}
	for _, signal := range s.rt.Signals() {
		if signal.Signal == v1.SIGKILL {
			s.checkKill(signal)
		}
	}
}

// checkKill finds a container that was killed before its pod's grace was over. The mutex is
// held.
func (s *soak) checkKill(signal lifecycletest.Signal) {
	uid, _, _ := strings.Cut(signal.ID, "/")
	p := s.pods[types.UID(uid)]
	if p == nil || !slices.Contains(slices.Collect(maps.Values(p.ids)), signal.ID) {
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

// forget has the agent forget the pods, which are gone.
func (s *soak) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid, p := range s.pods {
		for _, id := range p.ids {
			s.rt.Remove(id)
		}
		s.terminator.Forget(uid)
	}
	clear(s.pods)
	s.listed, s.reports = nil, nil
}

// renew replaces the host and the runtime by others, which have noted nothing yet.
func (s *soak) renew() {
	before := s.host
	s.mu.Lock()
	s.host, s.rt = &shutdowntest.Host{}, lifecycletest.NewRuntime()
	s.mu.Unlock()
	before.Lose()
	<-time.After(5 * time.Second)
	synctest.Wait()
	require.Zero(s.t, before.Held(), "the old host is let go once the new one is held")
	require.Equal(s.t, 1, s.host.Held())
}
