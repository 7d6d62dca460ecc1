//go:build go1.25

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

	"github.com/kubegrace/kubegrace/internal/need"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// stressSeed is the environment variable that selects one seed, whose steps are logged. The
// order in which goroutines run at the same moment does not depend on the seed.
const stressSeed = "KUBEGRACE_STRESS_SEED"

// The host, the embedder and its code do random things in a random order. No lock is held past
// the end of the host's time, none is closed twice, admission is refused from an announcement
// to its cancellation, the grace period of a pod only gets shorter, only pods that have ended
// are reported as ended, each shutdown has one report, and no kill is kept. When no call hangs any
// more, Run returns and leaves no goroutine behind.
func TestStress(t *testing.T) {
	first, n := uint64(0), 1000
	if need.Less(t, "900 of 1000 seeds of random stress") {
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
			if seed%20 == 0 { // not for each seed, because a disk is slow
				dir = t.TempDir()
			}
			synctest.Test(t, func(t *testing.T) { newStress(t, seed, dir).runSteps(n == 1) })
		})
		if failed {
			t.Fatalf("seed %d has failed: %s=%d go test -race -run '^TestStress$'", seed, stressSeed, seed)
		}
	}
}

// stress is the run of one seed, and what the test knows of the shutdown.
type stress struct {
	*stressWorld

	t       *testing.T
	host    *shutdowntest.Host
	m       *shutdown.Manager
	ctx     context.Context //nolint:containedctx // of Run
	stopRun context.CancelFunc
	runErr  chan error // of Run

	cannotTellPending  bool // the host cannot tell whether a shutdown is pending
	connected          bool
	pendingCallsBefore int // the calls of Pending up to the loss of the session
	pending            bool
	deadline           time.Time       // of the pending shutdown; zero: unknown
	announced          map[string]bool // the announcements that stand: by Trigger, by their Origin, or byHost
	dismissed          bool            // Trigger has cancelled a shutdown that the host has pending
	hostEnd            time.Time       // the end of the host's time; zero: not known, or no shutdown is
	goesAt             time.Time       // the earliest end that the host itself has announced for the shutdown; zero: none
	leastTime          time.Duration   // that a shutdown has if its host leaves enough
	keptUntil          time.Time       // until when a shutdown that is dismissed keeps its lock at least
	terminatedAll      bool            // TerminateAll was called
	terminations       []chan struct{} // closed when a call of TerminateAll has returned
	steps              []string
}

func newStress(t *testing.T, seed uint64, dir string) *stress {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // it has to be repeatable
	w := &stressWorld{ctx: t.Context(), began: time.Now(), faultsOver: make(chan struct{}), rng: rng, misbehaving: map[string]bool{}, pods: map[string]*stressPod{}, marking: map[string]int{}, restores: map[string]int{}}
	w.killer.Pods = map[string]shutdowntest.Behaviour{}
	for i := range 60 {
		if takes := rng.IntN(60_000) - 30_000; takes > 0 { // half of them end at once
			w.killer.Pods[podName(i)] = shutdowntest.Behaviour{Takes: time.Duration(takes) * time.Millisecond}
		}
	}
	for _, part := range []string{"pods", "policy", "hold", "release", "plan", "report", "volumes", "events", "publish", "flush", "marks"} {
		w.misbehaving[part] = rng.IntN(4) == 0
	}
	s := &stress{stressWorld: w, t: t, host: &shutdowntest.Host{}, runErr: make(chan error, 1), connected: true, announced: map[string]bool{}}
	if rng.IntN(2) == 0 {
		s.host.Limit = time.Duration(rng.IntN(60_000)) * time.Millisecond
	}
	if s.cannotTellPending = rng.IntN(8) == 0; s.cannotTellPending {
		s.host.PendingErr = errors.ErrUnsupported
	}
	for range rng.IntN(20) {
		s.addPod()
	}
	opts := s.options()
	opts.StateDir = dir
	s.leastTime = leastTime(opts) * 8 / 10
	m, err := shutdown.NewManager(opts)
	require.NoError(t, err)
	s.m = m
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	s.ctx, s.stopRun = ctx, stop
	run := make(chan struct{})
	go func() { defer close(run); s.runErr <- m.Run(ctx) }()
	t.Cleanup(func() { // also after a failure
		stop()
		s.endFaults()
		<-run
	})
	<-m.Ready()
	synctest.Wait()
	return s
}

// options returns random options.
func (s *stress) options() shutdown.Options {
	rng := s.rng
	opts := shutdown.Options{
		Pods: shutdown.PodsFunc(s.listPods), Killer: s.stressWorld, Source: s.host, Events: s.stressWorld, Node: &v1.Node{},
		Config: []plan.Config{
			config(30*time.Second, 10*time.Second),
			config(0, 0, priorityPeriod(0, 5), priorityPeriod(1000, 0), priorityPeriod(topPriority, 20)),
			config(0, 0, priorityPeriod(1000, 7)),
			config(time.Second, 0),
		}[rng.IntN(4)],
		Reporter: []shutdown.Reporter{
			nil,
			stressPublisher{s.stressWorld},
			stressFlusher{stressPublisher{s.stressWorld}},
			stressMarker{stressFlusher{stressPublisher{s.stressWorld}}},
			stressRestorer{stressMarker{stressFlusher{stressPublisher{s.stressWorld}}}},
			stressRestorer{stressMarker{stressFlusher{stressPublisher{s.stressWorld}}}},
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
		opts.Volumes = s.stressWorld
	}
	if rng.IntN(2) == 0 {
		opts.Policy = s.policy
	}
	if rng.IntN(6) == 0 {
		opts.LateStart = func(shutdown.Event) bool { return true }
	}
	return opts
}

// leastTime returns the time that a shutdown has if its host leaves enough, less its margin.
func leastTime(o shutdown.Options) time.Duration {
	least := o.Config.ShutdownGracePeriod.Duration
	for _, p := range o.Config.ShutdownGracePeriodByPodPriority {
		least += time.Duration(p.ShutdownGracePeriodSeconds) * time.Second
	}
	if o.Plan.Limit > 0 {
		least = min(least, o.Plan.Limit)
	}
	return least
}

// runSteps takes random steps. Then it either ends Run at once, or ends all faults and the
// shutdown before, and checks what is left.
func (s *stress) runSteps(verbose bool) {
	t := s.t
	defer func() {
		if t.Failed() || verbose {
			t.Log(strings.Join(s.steps, "\n"))
		}
	}()
	began := time.Now()
	for range 10 + s.randomInt(20) {
		text := s.randomStep()
		s.steps = append(s.steps, fmt.Sprintf("%8v %s", time.Since(began), text))
		if s.chance(6) {
			continue // so that the next step comes at the same moment
		}
		synctest.Wait()
		s.checkInvariants()
	}
	if s.chance(2) {
		s.stopInTheMiddle()
		return
	}
	s.endFaults()
	<-time.After(time.Minute) // until there is a session, which hears the host's cancellation
	synctest.Wait()
	require.NoError(t, s.m.Trigger(shutdown.Event{Cancelled: true}))
	s.host.Cancel()
	s.pending = false
	s.shutdownEnded()
	<-time.After(10 * time.Minute)
	synctest.Wait()
	s.checkInvariants()
	require.Zero(t, s.m.UnendedKills(), "kills that are kept")
	require.Equal(t, 1, s.host.Held(), "the host is held again")
	s.stopRun()
	require.NoError(t, <-s.runErr)
	s.checkAfterRun()
}

// endFaults makes calls that hang return, and later calls succeed.
func (s *stress) endFaults() {
	if !s.areFaultsOver() {
		close(s.faultsOver)
	}
}

// stopInTheMiddle ends Run while calls hang and a drain may go on. Run has to return within ten
// minutes all the same.
func (s *stress) stopInTheMiddle() {
	s.stopRun()
	stopped := time.Now()
	select {
	case err := <-s.runErr: // it names the calls that hang
		s.steps = append(s.steps, fmt.Sprint("Run gave ", err))
	case <-time.After(10 * time.Minute):
		s.t.Errorf("Run has not returned %v after its end", time.Since(stopped))
		s.endFaults()
		s.steps = append(s.steps, fmt.Sprint("Run gave ", <-s.runErr))
		return
	}
	s.endFaults()
	s.checkAfterRun()
}

// checkAfterRun checks what a manager leaves whose Run has returned.
func (s *stress) checkAfterRun() {
	for _, all := range s.terminations {
		<-all
	}
	synctest.Wait()
	require.Zero(s.t, s.host.Held(), "locks after Run")
	require.NoError(s.t, s.host.Err())
	require.Empty(s.t, s.allViolations())
	if report, ok := s.m.LastReport(); ok {
		s.checkReport(report)
		require.Empty(s.t, s.allViolations())
	}
}

// The manager does not keep a drain that has ended, whether its shutdown goes on, was cancelled
// before the end of the drain, or is cancelled after it.
func TestEndedDrainsAreNotKept(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 3 * time.Second}
		n.run()
		for i := range 10 {
			n.announce()
			n.advance(time.Duration(i) * time.Second)
			n.host.Cancel()
			synctest.Wait()
		}
		n.advance(time.Minute)
		require.Zero(t, n.m.UnendedKills())
	})
}
