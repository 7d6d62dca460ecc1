//go:build go1.25

package lifecycle_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/internal/judge"
	"github.com/kubegrace/kubegrace/internal/seeds"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// TestSimulator plays random worlds, one per seed: pods, calls of an agent, and a runtime, hooks and a recorder
// that fail at random. The judge checks that no promise of the package is broken in any of them.
//
//	KUBEGRACE_SIM_SEEDS=1000000 go test -run TestSimulator -timeout 0 ./lifecycle
//	KUBEGRACE_SIM_SEED=4711 go test -run TestSimulator ./lifecycle # one seed, with its record
func TestSimulator(t *testing.T) {
	seeds.Play(t, 10_000, func(t *testing.T, seed uint64) (func() string, error) {
		record, broken := playSeed(t, seed)
		if len(broken) == 0 {
			return record.Story, nil
		}
		return record.Story, fmt.Errorf("%q", broken)
	})
}

// simTimeLimit is how much real time a seed, which takes a millisecond, may take.
const simTimeLimit = 10 * time.Second

// playSeed runs the world of a seed, and returns what happened and which promises were broken.
func playSeed(t *testing.T, seed uint64) (record *judge.Record, broken []string) {
	t.Helper()
	defer func() {
		if value := recover(); value != nil { // a goroutine has not ended
			broken = append(broken, fmt.Sprintf("seed %d: %v", seed, value))
		}
	}()
	watchdog := time.AfterFunc(simTimeLimit, func() { panic(fmt.Sprintf("seed %d does not end: something is busy without waiting", seed)) })
	defer watchdog.Stop()
	synctest.Test(t, func(*testing.T) {
		s := newSim(seed)
		record = s.record
		broken = s.play()
	})
	return record, broken
}

// sim is a world with a terminator and the agent that calls it.
type sim struct {
	*simWorld

	ctx        context.Context
	rng        *rand.Rand // draws the pods and the calls; only the goroutine of play uses it
	terminator *judge.Terminator
	pods       []*v1.Pod
	callers    sync.WaitGroup
}

// newSim draws a world from a seed: its faults, the options of its terminator, and its pods.
func newSim(seed uint64) *sim {
	rng := rand.New(rand.NewPCG(seed, 40)) //nolint:gosec // must be reproducible
	record := judge.NewRecord()
	w := &simWorld{seed: seed, record: record, released: make(chan struct{}), rngs: map[string]*rand.Rand{}}
	s := &sim{simWorld: w, rng: rng, ctx: record.Context(context.Background())} //nolint:forbidigo // the bubble has none
	share := func(most int) int { return max(rng.IntN(2*most)-most, 0) }        // in percent of the calls; 0 in half of the worlds
	w.faults = simFaults{
		refuses: share(50), hangs: share(15), ignoresContext: share(15), lies: share(20), loses: share(20), isSlow: share(90), panics: share(6),
	}
	w.hasTimes, w.noLists = rng.IntN(4) > 0, rng.IntN(20) == 0
	// The options of the terminator. Some need a property of the world, such as a runtime that polls.
	options := lifecycle.TerminatorOptions{
		Hooks: w, Events: w,
		StopTimeoutSlack: time.Second + simTime(rng, 4*time.Second) + 11*time.Microsecond, // never coincides with the return of a call
		GiveUpAfter:      3*time.Second + simTime(rng, 15*time.Second),
	}
	if rng.IntN(5) == 0 {
		w.poll, w.phase = 5*time.Second, simTime(rng, 5*time.Second)
		options.StopTimeoutSlack = 7*time.Second + simTime(rng, 3*time.Second) + 11*time.Microsecond
	}
	if rng.IntN(4) == 0 {
		w.awayFrom = time.Now().Add(simTime(rng, 30*time.Second))
		w.awayTo = w.awayFrom.Add(simTime(rng, 40*time.Second))
	}
	if rng.IntN(3) > 0 {
		options.Exits = w
	}
	if rng.IntN(4) == 0 {
		options.HooksAtTurn = true
	}
	if rng.IntN(2) == 0 {
		options.OnHook = func(*v1.Pod, lifecycle.Container, lifecycle.HookResult) { w.Event(nil, "", "OnHook", "") }
	}
	if rng.IntN(10) == 0 {
		options.Pods = w
	} else {
		options.Runtime = w
	}
	var err error
	if s.terminator, err = record.NewTerminator(options); err != nil {
		panic(err)
	}
	for i := range 1 + rng.IntN(2) {
		s.pods = append(s.pods, s.newPod(i))
	}
	return s
}

// newPod draws a pod.
func (s *sim) newPod(number int) *v1.Pod {
	rng := s.rng
	name := fmt.Sprintf("p%d", number)
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	if rng.IntN(8) > 0 {
		pod.Spec.TerminationGracePeriodSeconds = ptr.To(rng.Int64N(13))
	}
	if rng.IntN(8) == 0 {
		pod.DeletionGracePeriodSeconds = ptr.To(rng.Int64N(13))
	}
	container := func(name string) v1.Container {
		c := v1.Container{Name: name}
		switch rng.IntN(5) {
		case 0, 1:
			c.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"true"}}}}
		case 2:
			c.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: rng.Int64N(15)}}}
		}
		if rng.IntN(6) == 0 {
			if c.Lifecycle == nil {
				c.Lifecycle = &v1.Lifecycle{}
			}
			c.Lifecycle.PostStart = &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"true"}}}
		}
		return c
	}
	for i := range 1 + rng.IntN(2) {
		pod.Spec.Containers = append(pod.Spec.Containers, container(fmt.Sprintf("main%d", i)))
	}
	for i := range rng.IntN(4) {
		c := container(fmt.Sprintf("init%d", i))
		if rng.IntN(4) > 0 {
			c.Name, c.RestartPolicy = fmt.Sprintf("sidecar%d", i), ptr.To(v1.ContainerRestartPolicyAlways)
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	if rng.IntN(6) == 0 {
		pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug"}}}
	}
	return pod
}

// namesOf returns the names of a pod's containers.
func namesOf(pod *v1.Pod) (names []string) {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		names = append(names, c.Name)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		names = append(names, c.Name)
	}
	return names
}

// after calls do after d, in its own goroutine. play waits for the goroutine.
func (s *sim) after(d time.Duration, do func()) {
	s.callers.Go(func() {
		s.sleep(nil, d)
		do()
	})
}

// play runs the world to its end, and returns the promises that were broken.
func (s *sim) play() []string {
	for _, pod := range s.pods {
		s.planCalls(pod)
	}
	if s.rng.IntN(8) == 0 {
		at, timeout := simTime(s.rng, 40*time.Second), simTime(s.rng, 20*time.Second)
		s.after(at, func() {
			ctx, cancel := context.WithTimeout(s.ctx, timeout)
			defer cancel()
			_ = s.terminator.Close(ctx)
		})
	}
	<-time.After(10 * time.Minute) // longer than any call may take
	broken := judge.Terminations(s.record)
	// End the world, and check that the terminator then keeps nothing. The second Forget is for what
	// calls have begun since.
	close(s.released)
	for _, pod := range s.pods {
		s.terminator.Forget(pod)
	}
	ctx, cancel := context.WithTimeout(s.ctx, time.Hour)
	defer cancel()
	if err := s.terminator.Close(ctx); err != nil {
		broken = append(broken, "Close after the return of all calls: "+err.Error())
	}
	s.callers.Wait()
	for _, pod := range s.pods {
		s.terminator.Forget(pod)
	}
	if _, found := s.terminator.Termination(s.pods[0]); found || s.terminator.Pods() > 0 {
		broken = append(broken, "a forgotten pod is remembered")
	}
	return broken
}

// planCalls draws the containers of a pod that run at first, and the calls that the agent makes for the pod.
func (s *sim) planCalls(pod *v1.Pod) {
	rng := s.rng
	for _, name := range namesOf(pod) {
		switch rng.IntN(6) {
		case 0:
		case 1:
			s.planStart(pod, name, simTime(rng, 30*time.Second))
		default:
			run := s.begin(pod, name)
			if isSidecar(pod, name) && rng.IntN(2) == 0 {
				s.after(0, func() { s.restart(run) })
			}
		}
	}
	s.planTerminate(pod, simTime(rng, 15*time.Second))
	for range rng.IntN(6) {
		at := simTime(rng, 40*time.Second)
		switch rng.IntN(8) {
		case 0, 1:
			s.planTerminate(pod, at)
		case 2, 3:
			seconds := rng.Int64N(8)
			s.after(at, func() {
				if termination, found := s.terminator.Termination(pod); found {
					s.terminator.Shorten(termination, seconds)
				}
			})
		case 4, 5:
			s.planKill(pod, at)
		case 6:
			names := namesOf(pod)
			s.planStart(pod, names[rng.IntN(len(names))], at)
		case 7:
			s.after(at, func() { s.terminator.Forget(pod) })
		}
	}
}

// isSidecar reports whether a pod has a sidecar with this name.
func isSidecar(pod *v1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c v1.Container) bool { return c.Name == name && c.RestartPolicy != nil })
}

// planStart plans a start of a container at a time. The start may be slow, ignore its context, fail, or fail although its
// container runs.
func (s *sim) planStart(pod *v1.Pod, name string, at time.Duration) {
	rng := s.rng
	takes := simTime(rng, 40*time.Second)
	ignoresContext := rng.IntN(3) == 0
	fails := rng.IntN(5) == 0
	startsAnyway := rng.IntN(3) == 0 // a start that fails leaves a running container
	withHook := rng.IntN(3) == 0     // PostStart is called after the start
	if rng.IntN(2) == 0 {
		takes = 0
	}
	goexits := rng.IntN(60) == 0 // the start function ends its goroutine
	s.after(at, func() {
		_ = s.terminator.Start(s.ctx, pod, name, func(ctx context.Context) error {
			if ignoresContext {
				s.sleep(nil, takes)
			} else if s.sleep(ctx.Done(), takes); ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if goexits {
				runtime.Goexit()
			}
			if fails && !startsAnyway {
				return errSimStart
			}
			run := s.begin(pod, name)
			if withHook {
				c := run.Container
				s.after(0, func() { _ = s.terminator.PostStart(s.ctx, pod, c) })
			}
			if fails {
				return errSimStart
			}
			return nil
		})
	})
}

// restart is the agent's loop for a sidecar. It starts the sidecar again, up to four times, when it has exited during a
// termination and ShouldRestart says so.
func (s *sim) restart(run *simRun) {
	for range 4 {
		select {
		case <-run.ended:
		case <-s.released:
			return
		}
		termination, found := s.terminator.Termination(run.pod)
		if !found {
			return
		}
		if again, _ := termination.ShouldRestart(run.Name); !again {
			return
		}
		var next *simRun
		err := s.terminator.Start(s.ctx, run.pod, run.Name, func(ctx context.Context) error {
			s.sleep(ctx.Done(), time.Second)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			next = s.begin(run.pod, run.Name)
			return nil
		})
		if err != nil || next == nil {
			return
		}
		run = next
	}
}

// planTerminate plans a KillPod at a time. Its request names the containers that are running then, or none: then the terminator
// asks the runtime for a list.
func (s *sim) planTerminate(pod *v1.Pod, at time.Duration) {
	rng := s.rng
	req := lifecycle.Request{OneAttempt: rng.IntN(10) == 0}
	if rng.IntN(2) == 0 {
		req.GracePeriodSeconds = ptr.To(rng.Int64N(15))
	}
	namesContainers := rng.IntN(8) == 0 || s.noLists
	timeout := simTime(rng, 60*time.Second)
	retries := rng.IntN(4) == 0 // up to two retries of a KillPod that has failed
	s.after(at, func() {
		for range 3 {
			if namesContainers { // those that are running each time: a request that names an earlier run of an ID would stop the later run
				req.Containers = []lifecycle.Container{}
				for _, r := range s.running(pod) {
					req.Containers = append(req.Containers, r.Container)
				}
			}
			ctx, cancel := context.WithTimeout(s.ctx, timeout)
			_, err := s.terminator.KillPod(ctx, pod, req)
			cancel()
			if err == nil || !retries {
				return
			}
			s.sleep(nil, time.Second)
		}
	})
}

// planKill schedules a KillContainer call for the time at, for one of the pod's containers that run then. If none runs, there
// is no call.
func (s *sim) planKill(pod *v1.Pod, at time.Duration) {
	rng := s.rng
	req := lifecycle.ContainerRequest{OneAttempt: rng.IntN(10) == 0}
	if rng.IntN(2) == 0 {
		req.GracePeriodSeconds = ptr.To(rng.Int64N(12))
	}
	which := rng.IntN(100)           // chooses the container
	withoutBegan := rng.IntN(3) == 0 // the request does not say which run of the container is meant
	timeout := simTime(rng, 60*time.Second)
	s.after(at, func() {
		runs := s.running(pod)
		if len(runs) == 0 {
			return
		}
		c := runs[which%len(runs)].Container
		if withoutBegan {
			c.Began = time.Time{}
		}
		ctx, cancel := context.WithTimeout(s.ctx, timeout)
		defer cancel()
		_, _ = s.terminator.KillContainer(ctx, pod, c, req)
	})
}
