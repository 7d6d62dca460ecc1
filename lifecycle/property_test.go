//go:build go1.25

package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// TestRandomPods terminates 10,000 random pods, whose containers end, ignore their signal,
// hang, fail and panic, and shortens terminations at random. It checks for each pod what must
// hold for all. A bubble has 200 pods, because the race detector allows 8,000 goroutines.
func TestRandomPods(t *testing.T) {
	const bubbles, pods = 50, 200
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for i := range uint64(bubbles) {
		synctest.Test(t, func(t *testing.T) {
			newCrowd(t, rand.New(rand.NewPCG(seed, i)), i%2 == 0).terminate(pods)
		})
	}
}

// crowd is a set of random pods on one runtime.
type crowd struct {
	*testing.T

	random     *rand.Rand
	rt         *lifecycletest.Runtime
	terminator *lifecycle.Terminator
	members    []*randomPod

	mu    sync.Mutex
	hooks map[string]int // runs by container ID

	exits map[string]time.Time // by container ID, once all have ended
	stops map[string][]lifecycletest.Stop
}

// randomPod is one random pod with the plan of its termination.
type randomPod struct {
	pod     *v1.Pod
	scripts map[string]lifecycletest.Script // by container ID
	asked   *int64
	plan    []shortening
	faulty  bool // its runtime does not do as it is told

	start, end time.Time
	terms      []term
	result     lifecycle.Result
}

// shortening is one call of Shorten.
type shortening struct {
	after   time.Duration
	seconds int64
}

// term is a grace period, and the time from which it applies.
type term struct {
	from    time.Time
	seconds int64
}

func (t term) deadline() time.Time { return t.from.Add(time.Duration(t.seconds) * time.Second) }

// newCrowd makes a crowd. If counted is true, a countingRunner runs the hooks, which is not
// the built-in runner for the terminator.
func newCrowd(t *testing.T, random *rand.Rand, counted bool) *crowd {
	c := &crowd{T: t, random: random, rt: lifecycletest.NewRuntime(), hooks: map[string]int{}}
	hooks := lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{Commands: c.rt, HTTP: slowServer{}})
	if counted {
		hooks = countingRunner{hooks, c}
	}
	var err error
	c.terminator, err = lifecycle.NewTerminator(lifecycle.TerminatorOptions{
		Runtime: c.rt, Exits: c.rt, Events: &lifecycletest.Events{}, Hooks: hooks,
	})
	require.NoError(t, err)
	return c
}

// countingRunner counts how often each container's hook runs.
type countingRunner struct {
	lifecycle.HandlerRunner

	crowd *crowd
}

func (r countingRunner) Run(ctx context.Context, id string, pod *v1.Pod, container *v1.Container, handler *v1.LifecycleHandler) (string, error) {
	r.crowd.mu.Lock()
	r.crowd.hooks[id]++
	r.crowd.mu.Unlock()
	return r.HandlerRunner.Run(ctx, id, pod, container, handler)
}

// slowServer responds after the duration in the path, unless the request's context ends.
type slowServer struct{}

func (slowServer) Do(req *http.Request) (*http.Response, error) {
	takes, err := time.ParseDuration(strings.TrimPrefix(req.URL.Path, "/"))
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(takes):
		return &http.Response{StatusCode: http.StatusTeapot, Body: io.NopCloser(strings.NewReader(""))}, nil
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

// terminate makes, runs and terminates pods, and checks their results.
func (c *crowd) terminate(pods int) {
	for i := range pods {
		c.members = append(c.members, c.randomPod(i))
	}
	var all sync.WaitGroup
	for _, m := range c.members {
		all.Go(func() { c.terminateOne(m) })
	}
	all.Wait()
	for _, m := range c.members {
		m.check(c)
	}
	require.NoError(c, c.terminator.Close(c.Context()))
}

// randomTime returns a random duration below so many seconds.
func (c *crowd) randomTime(seconds int) time.Duration {
	return time.Duration(c.random.IntN(seconds*1000)) * time.Millisecond
}

// oneOf returns true in one of n calls.
func (c *crowd) oneOf(n int) bool { return c.random.IntN(n) == 0 }

// randomPod makes a random pod of 1 to 8 containers.
func (c *crowd) randomPod(i int) *randomPod {
	name := fmt.Sprint("pod-", i)
	m := &randomPod{scripts: map[string]lifecycletest.Script{}, pod: &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec:       v1.PodSpec{TerminationGracePeriodSeconds: ptr.To(int64(c.random.IntN(40)))},
	}}
	if c.oneOf(4) {
		m.asked = ptr.To(int64(c.random.IntN(30)))
	}
	for n := range 1 + c.random.IntN(8) {
		c.addContainer(m, fmt.Sprint("c", n))
	}
	for range c.random.IntN(4) {
		m.plan = append(m.plan, shortening{c.randomTime(15), int64(c.random.IntN(20) - 1)})
	}
	return m
}

// addContainer adds a random container of a random role.
func (c *crowd) addContainer(m *randomPod, name string) {
	id := m.pod.Name + "/" + name
	m.scripts[id] = c.randomScript(m)
	status := v1.ContainerStatus{Name: name, ContainerID: id, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}
	spec := container(name, c.randomHook())
	switch {
	case c.oneOf(3):
		spec.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
		m.pod.Spec.InitContainers = append(m.pod.Spec.InitContainers, spec)
		m.pod.Status.InitContainerStatuses = append(m.pod.Status.InitContainerStatuses, status)
	default:
		m.pod.Spec.Containers = append(m.pod.Spec.Containers, spec)
		m.pod.Status.ContainerStatuses = append(m.pod.Status.ContainerStatuses, status)
	}
}

// randomHook is a random hook, nil for none.
func (c *crowd) randomHook() *v1.LifecycleHandler {
	switch c.random.IntN(4) {
	case 0:
		return sleep(int64(c.random.IntN(45)))
	case 1:
		return exec()
	case 2:
		return &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Host: "app", Port: intstr.FromInt32(80), Path: c.randomTime(45).String()}}
	default:
		return nil
	}
}

// randomScript is the script of a random container.
func (c *crowd) randomScript(m *randomPod) lifecycletest.Script {
	s := lifecycletest.Script{ExitAfterTerm: c.randomTime(20), IgnoreTerm: c.oneOf(5), Exec: c.randomCommand()}
	if c.oneOf(4) {
		s.ExitAfter = c.randomTime(40)
	}
	if c.oneOf(12) {
		m.faulty = true
		s.HangStops = c.random.IntN(4) - 1
		s.FailStops = c.random.IntN(4) - 1
	}
	return s
}

// randomCommand is the command of a random exec hook: it returns in time, fails, panics, or ignores
// its context.
func (c *crowd) randomCommand() func(context.Context, []string) ([]byte, error) {
	long := c.randomTime(45)
	switch c.random.IntN(8) {
	case 0:
		return func(context.Context, []string) ([]byte, error) { return nil, errors.New("failed") }
	case 1:
		return func(context.Context, []string) ([]byte, error) { panic("boom") }
	case 2:
		return func(context.Context, []string) ([]byte, error) { <-time.After(long); return nil, nil }
	default:
		return commandTaking(long)
	}
}

// terminateOne runs a pod, terminates it, and shortens it by its plan.
func (c *crowd) terminateOne(m *randomPod) {
	for id, script := range m.scripts {
		c.rt.Start(id, script)
	}
	m.start = time.Now()
	quiet := klog.NewContext(c.Context(), klog.Logger{}) // hooks that panic are logged with their stacks
	termination := c.terminator.Pod(m.pod).Terminate(quiet, lifecycle.Request{GracePeriodSeconds: m.asked})
	m.terms = []term{{m.start, termination.Result().GracePeriodSeconds}}
	for _, s := range m.plan {
		select {
		case <-time.After(s.after):
			m.shorten(c, termination, s.seconds)
		case <-termination.Done():
		}
	}
	<-termination.Done()
	m.end, m.result = time.Now(), termination.Result()
}

// shorten calls Shorten and checks its result.
func (m *randomPod) shorten(c *crowd, termination *lifecycle.Termination, seconds int64) {
	next := term{time.Now(), max(seconds, 1)}
	earlier := next.deadline().Before(m.terms[len(m.terms)-1].deadline())
	shortened := termination.Shorten(seconds)
	select {
	case <-termination.Done():
	default:
		require.Equal(c, earlier, shortened)
	}
	if shortened {
		m.terms = append(m.terms, next)
	}
}

// check checks what must hold for every pod.
func (m *randomPod) check(c *crowd) {
	c.Helper()
	slack := 2 * time.Second // the floor of a stop
	if m.faulty {
		slack += lifecycle.DefaultGiveUp
	}
	last := m.terms[len(m.terms)-1]
	require.False(c, m.end.After(last.deadline().Add(slack)), "%s ended %v after its deadline", m.pod.Name, m.end.Sub(last.deadline()))
	exits, stops := c.records()
	for _, container := range m.result.Containers {
		require.Equal(c, lifecycle.PhaseEnded, container.Phase)
		require.NotEmpty(c, container.Outcome)
		require.LessOrEqual(c, c.hooks[container.ID], 1)
		_, exited := exits[container.ID]
		require.True(c, exited || container.Outcome == lifecycle.RuntimeStuck, "%s runs on", container.ID)
		m.checkStops(c, stops[container.ID])
		m.checkTurn(c, container, exits, stops)
		m.checkSleep(c, container, exits)
	}
}

// records returns the exits and the stops by container ID.
func (c *crowd) records() (exits map[string]time.Time, stops map[string][]lifecycletest.Stop) {
	if c.exits != nil {
		return c.exits, c.stops
	}
	c.exits, c.stops = map[string]time.Time{}, map[string][]lifecycletest.Stop{}
	for _, exit := range c.rt.Exits() {
		c.exits[exit.ID] = exit.At
	}
	for _, stop := range c.rt.Stops() {
		c.stops[stop.ID] = append(c.stops[stop.ID], stop)
	}
	return c.exits, c.stops
}

// termsAt returns the terms that a call at a time may have seen: two, if one starts then.
func (m *randomPod) termsAt(at time.Time) []term {
	var terms []term
	for i, t := range m.terms {
		ended := i+1 < len(m.terms) && m.terms[i+1].from.Before(at)
		if !t.from.After(at) && !ended {
			terms = append(terms, t)
		}
	}
	return terms
}

// checkStops checks that hook, wait and stop together take no more than the grace period and
// the minimum timeout of a stop.
func (m *randomPod) checkStops(c *crowd, stops []lifecycletest.Stop) {
	c.Helper()
	for _, stop := range stops {
		within := func(t term) bool {
			return int64(stop.At.Sub(t.from)/time.Second)+stop.TimeoutSeconds <= t.seconds+2
		}
		require.True(c, stop.TimeoutSeconds == 0 || slices.ContainsFunc(m.termsAt(stop.At), within), "%+v under %+v", stop, m.terms)
	}
}

// checkTurn checks that no container is stopped before its turn, unless the deadline has
// passed.
func (m *randomPod) checkTurn(c *crowd, container lifecycle.ContainerResult, exits map[string]time.Time, stops map[string][]lifecycletest.Stop) {
	c.Helper()
	sidecar := m.sidecarIndex(container.Name)
	if sidecar < 0 {
		return
	}
	at := stops[container.ID][0].At
	timeLeft := func(t term) bool { return at.Before(t.deadline()) }
	for _, other := range m.result.Containers {
		before := m.sidecarIndex(other.Name) < 0 || m.sidecarIndex(other.Name) > sidecar
		if !before || other.Outcome == lifecycle.RuntimeStuck || !all(m.termsAt(at), timeLeft) {
			continue
		}
		require.False(c, exits[other.ID].After(at), "%s was stopped before %s", container.ID, other.ID)
	}
}

// checkSleep checks that a sleep ends within 100 ms after its container has exited.
func (m *randomPod) checkSleep(c *crowd, container lifecycle.ContainerResult, exits map[string]time.Time) {
	c.Helper()
	if exit, exited := exits[container.ID]; exited && m.hasSleepHook(container.Name) {
		require.LessOrEqual(c, container.Hook.Took, max(exit.Sub(m.start), 0)+100*time.Millisecond)
	}
}

// hasSleepHook reports whether the hook of a container is a sleep.
func (m *randomPod) hasSleepHook(name string) bool {
	for _, spec := range slices.Concat(m.pod.Spec.Containers, m.pod.Spec.InitContainers) {
		if spec.Name == name {
			return spec.Lifecycle != nil && spec.Lifecycle.PreStop.Sleep != nil
		}
	}
	return false
}

// sidecarIndex returns the index of a sidecar in the spec, -1 for a main container.
func (m *randomPod) sidecarIndex(name string) int {
	return slices.IndexFunc(m.pod.Spec.InitContainers, func(c v1.Container) bool { return c.Name == name })
}

// all reports whether so is true for all values.
func all[T any](values []T, so func(T) bool) bool {
	return !slices.ContainsFunc(values, func(v T) bool { return !so(v) })
}
