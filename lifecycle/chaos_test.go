//go:build go1.25

package lifecycle_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// TestRandomFaults terminates 10,000 random pods whose runtime fails, hangs, panics and is
// away at random. Several callers call KillPod, KillContainer, Start and Forget
// independently of each other. Three things must hold: no result says that a container has
// ended which runs, no hook runs twice, and no container runs after a last KillPod that
// should have stopped it.
func TestRandomFaults(t *testing.T) {
	const bubbles, pods = 50, 200
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var starts int64
	for i := range uint64(bubbles) {
		synctest.Test(t, func(t *testing.T) {
			c := newChaos(t, rand.New(rand.NewPCG(seed, i)))
			c.run(pods)
			starts += c.starts.Load()
		})
	}
	t.Logf("%d containers were started while their pods were killed", starts)
}

// chaos is the embedder's code around a terminator, with random faults. Each pod has its own
// runtime.
type chaos struct {
	*testing.T

	random     *rand.Rand
	terminator *lifecycle.Terminator
	runtimes   map[string]*lifecycletest.Runtime // by pod
	unlisted   map[string]bool                   // pods of which Start alone knows what runs
	starts     atomic.Int64                      // that have brought a container up

	mu    sync.Mutex
	dice  map[string]*rand.Rand            // by pod, so that the bad luck of one is not that of another
	hooks map[string]int                   // runs by container ID
	known map[string][]lifecycle.Container // that were started, by pod
	begun map[string]string                // starts that are under way, the pod by the ID
}

func newChaos(t *testing.T, random *rand.Rand) *chaos {
	c := &chaos{
		T: t, random: random, dice: map[string]*rand.Rand{},
		runtimes: map[string]*lifecycletest.Runtime{}, unlisted: map[string]bool{}, hooks: map[string]int{}, known: map[string][]lifecycle.Container{},
		begun: map[string]string{},
	}
	var err error
	c.terminator, err = lifecycle.NewTerminator(lifecycle.TerminatorOptions{
		Runtime: c, Exits: c, Events: c, Hooks: c, GiveUp: 10 * time.Minute,
	})
	require.NoError(t, err)
	return c
}

// randomInt returns a random number below n for a pod. It may be called concurrently.
func (c *chaos) randomInt(pod string, n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dice[pod].IntN(n)
}

// panicOrExit panics or ends its goroutine at random.
func (c *chaos) panicOrExit(pod string, n int) {
	if c.randomInt(pod, n) == 0 {
		panic("boom")
	}
	if c.randomInt(pod, n) == 0 {
		goruntime.Goexit()
	}
}

// podOf returns the name of the pod that a container ID belongs to.
func podOf(id string) string {
	pod, _, _ := strings.Cut(id, "/")
	return pod
}

func (c *chaos) runtimeOf(id string) *lifecycletest.Runtime { return c.runtimes[podOf(id)] }

// StopContainer calls the runtime. It may panic or end its goroutine before or after that.
func (c *chaos) StopContainer(ctx context.Context, id string, timeoutSeconds int64) error {
	c.panicOrExit(podOf(id), 10)
	err := c.runtimeOf(id).StopContainer(ctx, id, timeoutSeconds)
	c.panicOrExit(podOf(id), 20)
	return err
}

func (c *chaos) Exited(id string) <-chan struct{} {
	c.panicOrExit(podOf(id), 20)
	return c.runtimeOf(id).Exited(id)
}

func (c *chaos) Event(object apiruntime.Object, _, _, _ string) {
	switch o := object.(type) {
	case *v1.Pod:
		c.panicOrExit(o.Name, 20)
	case *v1.ObjectReference:
		c.panicOrExit(o.Name, 20)
	}
}

// Run counts the hook, which takes up to 8 s and ends with its context in three of four
// cases.
func (c *chaos) Run(ctx context.Context, id string, _ *v1.Pod, _ *v1.Container, _ *v1.LifecycleHandler) (string, error) {
	c.mu.Lock()
	c.hooks[id]++
	c.mu.Unlock()
	takes := time.Duration(c.randomInt(podOf(id), 8000)) * time.Millisecond
	if c.randomInt(podOf(id), 4) == 0 {
		<-time.After(takes)
		return "", nil
	}
	err := wait(ctx, takes)
	c.panicOrExit(podOf(id), 10)
	return "", err
}

// wait waits, unless ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	_, err := commandTaking(d)(ctx, nil)
	return err
}

func (c *chaos) run(pods int) {
	var all sync.WaitGroup
	plans := make([]func(), 0, pods)
	for i := range pods {
		plans = append(plans, c.newPod(fmt.Sprint("pod-", i)))
	}
	for _, plan := range plans {
		all.Go(plan)
	}
	all.Wait()
	for id, runs := range c.hooks {
		require.LessOrEqual(c, runs, 1, "the hook of %s", id)
	}
	require.NoError(c, c.terminator.Close(c.Context()))
}

// newPod makes a pod, and a function that runs its life.
func (c *chaos) newPod(name string) func() {
	rt := lifecycletest.NewRuntime()
	c.runtimes[name], c.dice[name] = rt, rand.New(rand.NewPCG(c.random.Uint64(), 0))
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec:       v1.PodSpec{TerminationGracePeriodSeconds: ptr.To(int64(c.random.IntN(15)))},
	}
	for i := range 1 + c.random.IntN(3) {
		c.addContainer(pod, rt, fmt.Sprint("c", i), i)
	}
	for range c.random.IntN(3) {
		from := c.randomTime(20)
		rt.Away(from, from+c.randomTime(6))
	}
	ctx := klog.NewContext(c.Context(), klog.Logger{}) // the stacks of panics are no use here
	c.unlisted[name] = c.random.IntN(3) == 0
	actors := make([]func(), 0, 8)
	for i := range 2 + c.random.IntN(6) {
		// No two actors act in the same microsecond, so that a list of what runs is true when it is used.
		at := c.randomTime(15) + time.Duration(i+1)*time.Microsecond
		actors = append(actors, c.randomCall(ctx, pod, rt, at, c.random.IntN(7)))
	}
	return func() {
		for _, named := range c.running(pod, rt) {
			if c.unlisted[name] {
				require.NoError(c, c.terminator.Pod(pod).Start(ctx, named.Name, func(context.Context) (string, error) { return named.ID, nil }))
			}
		}
		var all sync.WaitGroup
		for _, actor := range actors {
			all.Go(actor)
		}
		all.Wait()
		<-time.After(time.Minute)
		c.killPod(ctx, pod, rt, nil)
		for _, id := range c.running(pod, rt) {
			require.Fail(c, "a container runs on", id.ID)
		}
	}
}

// randomTime is a random time, in milliseconds.
func (c *chaos) randomTime(seconds int) time.Duration {
	return time.Duration(c.random.IntN(seconds*1000)) * time.Millisecond
}

func (c *chaos) addContainer(pod *v1.Pod, rt *lifecycletest.Runtime, name string, i int) {
	spec := container(name, []*v1.LifecycleHandler{nil, exec(), sleep(int64(c.random.IntN(12)))}[c.random.IntN(3)])
	if i > 0 && c.random.IntN(3) == 0 {
		spec.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, spec)
	} else {
		pod.Spec.Containers = append(pod.Spec.Containers, spec)
	}
	script := c.randomScript()
	script.ExitAfter = []time.Duration{0, 0, c.randomTime(30)}[c.random.IntN(3)]
	c.start(rt, pod, lifecycle.Container{Name: name, ID: pod.Name + "/" + name}, script)
}

// randomScript is the script of a random container.
func (c *chaos) randomScript() lifecycletest.Script {
	return lifecycletest.Script{
		ExitAfterTerm: c.randomTime(8), IgnoreTerm: c.random.IntN(5) == 0,
		HangStops: max(c.random.IntN(8)-5, 0), FailStops: max(c.random.IntN(8)-4, 0),
	}
}

// start runs a container and records that.
func (c *chaos) start(rt *lifecycletest.Runtime, pod *v1.Pod, named lifecycle.Container, script lifecycletest.Script) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rt.Start(named.ID, script)
	c.known[pod.Name] = append(c.known[pod.Name], named)
}

// running are the containers of a pod that run now.
func (c *chaos) running(pod *v1.Pod, rt *lifecycletest.Runtime) []lifecycle.Container {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.known[pod.Name]), func(named lifecycle.Container) bool {
		_, exited := rt.ExitCode(named.ID)
		return exited
	})
}

// restart calls Start for a container that has exited, and for a sidecar also while the pod
// is being terminated. The start takes a while, fails, panics, or ignores its context.
func (c *chaos) restart(ctx context.Context, pod *v1.Pod, rt *lifecycletest.Runtime, name string, script lifecycletest.Script, takes time.Duration) {
	if slices.ContainsFunc(c.running(pod, rt), func(named lifecycle.Container) bool { return named.Name == name }) {
		return
	}
	id := fmt.Sprintf("%s/%s-%d", pod.Name, name, takes) // takes are random enough
	ended := make(chan struct{})
	go func() { // a start that ends its goroutine ends its caller's
		defer close(ended)
		_ = c.terminator.Pod(pod).Start(ctx, name, func(ctx context.Context) (string, error) { // whatever it says
			c.mu.Lock()
			c.begun[id] = pod.Name
			c.mu.Unlock()
			c.panicOrExit(pod.Name, 20)
			err := wait(ctx, takes)
			if err != nil && c.randomInt(pod.Name, 3) != 0 || c.randomInt(pod.Name, 8) == 0 {
				return "", lifecycletest.ErrScripted
			}
			c.start(rt, pod, lifecycle.Container{Name: name, ID: id}, script)
			c.starts.Add(1)
			return id, nil
		})
	}()
	<-ended
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.begun, id)
}

// randomCall returns a function that calls one method for a pod at a random time.
func (c *chaos) randomCall(ctx context.Context, pod *v1.Pod, rt *lifecycletest.Runtime, at time.Duration, what int) func() {
	override := ptr.To(int64(c.random.IntN(20)))
	name := "c" + strconv.Itoa(c.random.IntN(len(pod.Spec.Containers)+len(pod.Spec.InitContainers)))
	script, takes := c.randomScript(), c.randomTime(5)
	return func() {
		<-time.After(at)
		switch what {
		case 0:
			c.killPod(ctx, pod, rt, nil)
		case 1:
			c.killPod(ctx, pod, rt, override)
		case 2:
			if !c.unlisted[pod.Name] { // or nobody would know any more what runs
				c.terminator.ForgetPod(pod.UID)
			}
		case 3, 4:
			c.restart(ctx, pod, rt, name, script, takes)
		default:
			for _, named := range c.running(pod, rt) {
				// The kill before this one may have taken a while. If the pod was forgotten
				// meanwhile, it is also forgotten that the hooks of its containers have run.
				if _, exited := rt.ExitCode(named.ID); named.Name == name && !exited {
					result, _ := c.terminator.KillContainer(ctx, pod, named, lifecycle.ContainerRequest{GracePeriodSeconds: override}) // the result has the error
					c.checkResult(rt, result)
				}
			}
		}
	}
}

// killPod terminates a pod and checks the result. A container that is started meanwhile is
// stopped with the others.
func (c *chaos) killPod(ctx context.Context, pod *v1.Pod, rt *lifecycletest.Runtime, override *int64) {
	list := c.running(pod, rt)
	due := slices.Clone(list)
	c.mu.Lock()
	for id, name := range c.begun {
		if name == pod.Name {
			due = append(due, lifecycle.Container{ID: id})
		}
	}
	c.mu.Unlock()
	if c.unlisted[pod.Name] {
		list = []lifecycle.Container{}
	}
	result, _ := c.terminator.KillPod(ctx, pod, lifecycle.Request{Containers: list, GracePeriodSeconds: override}) // the result has the error
	for _, container := range result.Containers {
		c.checkResult(rt, container)
	}
	running := c.running(pod, rt)
	for _, named := range due {
		runs := slices.ContainsFunc(running, func(other lifecycle.Container) bool { return other.ID == named.ID })
		require.True(c, !runs || result.Outcome() == lifecycle.RuntimeStuck, "%s runs, and the pod is %s", named.ID, result.Outcome())
	}
}

// checkResult checks that a container has ended if its result says so.
func (c *chaos) checkResult(rt *lifecycletest.Runtime, result lifecycle.ContainerResult) {
	require.NotEmpty(c, result.Outcome)
	if result.ID == "" {
		require.Contains(c, []lifecycle.Outcome{lifecycle.NotFound, lifecycle.RuntimeStuck}, result.Outcome, "a start that gave no ID")
		return
	}
	_, exited := rt.ExitCode(result.ID)
	require.True(c, exited || result.Outcome == lifecycle.RuntimeStuck, "%s runs, and is %s", result.ID, result.Outcome)
}
