package shutdown_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// stressSeed is the variable that has a single seed run, with its steps in the log. What
// goroutines do at the same moment is not in its hands.
const stressSeed = "KUBEGRACE_STRESS_SEED"

// Whatever the host, the embedder and its code do, in whatever order: no lock is held past
// the end of the host's time, none is closed twice, admission is refused from an
// announcement to its cancellation, the grace of a pod only gets shorter, only pods that
// have ended are said to have, no drain is kept, and once nothing hangs any more Run returns
// and leaves no goroutine behind.
func TestStress(t *testing.T) {
	first, n := uint64(0), 1000
	if testing.Short() {
		n = 100
	}
	if text := os.Getenv(stressSeed); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		first, n = seed, 1
	}
	for seed := range uint64(n) {
		seed += first
		failed := !t.Run(fmt.Sprintf("%s=%d", stressSeed, seed), func(t *testing.T) {
			dir := ""
			if seed%20 == 0 { // a disk takes its time
				dir = t.TempDir()
			}
			synctest.Test(t, func(t *testing.T) { newStress(t, seed, dir).run(n == 1) })
		})
		if failed {
			t.Fatalf("seed %d has failed: %s=%d go test -race -run '^TestStress$'", seed, stressSeed, seed)
		}
	}
}

// stress is one run, and what the test knows of the shutdown.
type stress struct {
	*world

	t    *testing.T
	host *shutdowntest.Host
	m    *shutdown.Manager
	ctx  context.Context //nolint:containedctx // of Run
	stop context.CancelFunc
	ret  chan error // of Run

	blind     bool // the host cannot tell what is pending
	connected bool
	asked     int // how often the host was asked what is pending, when the session was lost
	pending   bool
	deadline  time.Time // of what is pending; zero: unknown
	triggered bool
	shutting  bool
	end       time.Time // of the host's time; zero: not known
	final     bool      // TerminateAll was called
	all       []chan struct{}
	steps     []string
}

func newStress(t *testing.T, seed uint64, dir string) *stress {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // it has to be repeatable
	w := &world{ctx: t.Context(), began: time.Now(), over: make(chan struct{}), rng: rng, wild: map[string]bool{}, pods: map[string]*stressPod{}}
	w.killer.Pods = map[string]shutdowntest.Behaviour{}
	for i := range 60 {
		if takes := rng.IntN(60_000) - 30_000; takes > 0 { // half of them end at once
			w.killer.Pods[podName(i)] = shutdowntest.Behaviour{Takes: time.Duration(takes) * time.Millisecond}
		}
	}
	for _, part := range []string{"pods", "policy", "hold", "release", "plan", "report", "volumes", "events", "publish", "flush", "marks"} {
		w.wild[part] = rng.IntN(4) == 0
	}
	s := &stress{world: w, t: t, host: &shutdowntest.Host{}, ret: make(chan error, 1), connected: true}
	if rng.IntN(2) == 0 {
		s.host.Limit = time.Duration(rng.IntN(60_000)) * time.Millisecond
	}
	if s.blind = rng.IntN(8) == 0; s.blind {
		s.host.PendingErr = errors.ErrUnsupported
	}
	for range rng.IntN(20) {
		s.addPod()
	}
	opts := s.options()
	opts.StateDir = dir
	m, err := shutdown.NewManager(opts)
	require.NoError(t, err)
	s.m = m
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	s.ctx, s.stop = ctx, stop
	run := make(chan struct{})
	go func() { defer close(run); s.ret <- m.Run(ctx) }()
	t.Cleanup(func() { // also after a failure
		stop()
		s.calm()
		<-run
	})
	<-m.Ready()
	synctest.Wait()
	return s
}

// options are random ones.
func (s *stress) options() shutdown.Options {
	rng := s.rng
	opts := shutdown.Options{
		Pods: s.list, Killer: s.world, Source: s.host, Events: s.world, Node: &v1.Node{},
		Config: []plan.Config{
			config(30*time.Second, 10*time.Second),
			config(0, 0, queuedWrite(0, 5), queuedWrite(1000, 0), queuedWrite(topPriority, 20)),
			config(0, 0, queuedWrite(1000, 7)),
			config(time.Second, 0),
		}[rng.IntN(4)],
		Reporter: []shutdown.Reporter{
			nil,
			stressPublisher{s.world},
			stressFlusher{stressPublisher{s.world}},
			stressMarker{stressFlusher{stressPublisher{s.world}}},
			stressRestorer{stressMarker{stressFlusher{stressPublisher{s.world}}}},
			stressRestorer{stressMarker{stressFlusher{stressPublisher{s.world}}}},
		}[rng.IntN(6)],
		OnPlan: s.onPlan, OnReport: s.onReport,
	}
	opts.Plan.NoRollOver = rng.IntN(3) == 0
	spans := []time.Duration{0, 0, 0, -1, time.Second, 5 * time.Second}
	for _, span := range []*time.Duration{
		&opts.Plan.HoldTimeout, &opts.Plan.PublishTimeout, &opts.Plan.ReadinessReserve,
		&opts.Plan.UnmountReserve, &opts.Plan.FlushReserve, &opts.Plan.ReleaseMargin,
	} {
		*span = spans[rng.IntN(len(spans))]
	}
	if rng.IntN(6) == 0 {
		opts.Plan.Limit = time.Duration(rng.IntN(40)+1) * time.Second
	}
	if rng.IntN(3) == 0 {
		opts.Hold = s.hold
	}
	if rng.IntN(2) == 0 {
		opts.OnRelease = s.onRelease
	}
	if rng.IntN(3) == 0 {
		opts.Volumes = s.world
	}
	if rng.IntN(2) == 0 {
		opts.Policy = s.policy
	}
	if rng.IntN(6) == 0 {
		opts.LateStart = func(shutdown.Event) bool { return true }
	}
	return opts
}

// run takes steps, then calms down and looks at what is left.
func (s *stress) run(verbose bool) {
	t := s.t
	defer func() {
		if t.Failed() || verbose {
			t.Log(strings.Join(s.steps, "\n"))
		}
	}()
	began := time.Now()
	for range 10 + s.pick(20) {
		text := s.step()
		s.steps = append(s.steps, fmt.Sprintf("%8v %s", time.Since(began), text))
		if s.chance(6) {
			continue // the next step comes at the same moment
		}
		synctest.Wait()
		s.look()
	}
	if s.chance(2) {
		s.leave()
		return
	}
	s.calm()
	synctest.Wait()
	require.NoError(t, s.m.Trigger(shutdown.Event{Cancelled: true}))
	s.host.Cancel()
	s.pending, s.triggered, s.shutting, s.end = false, false, false, time.Time{}
	pass := 10 * time.Minute
	<-time.After(pass)
	synctest.Wait()
	s.look()
	require.Zero(t, s.m.EarlierDrains(), "drains that are kept")
	require.Equal(t, 1, s.host.Held(), "the host is held again")
	s.stop()
	require.NoError(t, <-s.ret)
	s.gone()
}

// calm lets nothing hang, fail or panic any more.
func (s *stress) calm() {
	if !s.isOver() {
		close(s.over)
	}
}

// leave ends Run in the middle of everything. It waits for what hangs, but not for ever.
func (s *stress) leave() {
	s.stop()
	stopped := time.Now()
	select {
	case err := <-s.ret: // names what hangs
		s.steps = append(s.steps, fmt.Sprint("Run gave ", err))
	case <-time.After(10 * time.Minute):
		s.t.Errorf("Run has not returned %v after its end", time.Since(stopped))
		s.calm()
		s.steps = append(s.steps, fmt.Sprint("Run gave ", <-s.ret))
		return
	}
	s.calm()
	s.gone()
}

// gone looks at what is left of a manager whose Run has returned.
func (s *stress) gone() {
	for _, all := range s.all {
		<-all
	}
	synctest.Wait()
	require.Zero(s.t, s.host.Held(), "locks after Run")
	require.NoError(s.t, s.host.Err())
	require.Empty(s.t, s.blamed())
	if report, ok := s.m.LastReport(); ok {
		s.check(report)
		require.Empty(s.t, s.blamed())
	}
}

// A drain that has come to its end is kept by nobody, whether its shutdown goes on, was
// cancelled before that or is cancelled after it.
func TestEndedDrainsAreNotKept(t *testing.T) {
	bubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 3 * time.Second}
		n.run()
		for i := range 10 {
			n.announce()
			n.pass(time.Duration(i) * time.Second)
			n.host.Cancel()
			synctest.Wait()
		}
		n.pass(time.Minute)
		require.Zero(t, n.m.EarlierDrains())
	})
}
