//go:build go1.25

package lifecycle_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/seeds"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// difference is a class of differences from the kubelet: the first cell of its row in the table of
// internal/fork/README.md.
type difference string

const (
	sleepOutlivesExit difference = "container exits during a sleep hook"
	hookOutlivesGrace difference = "hook at the end of its grace"
	execWithoutLimit  difference = "exec hook"
	stopFails         difference = "failed StopContainer"
	stopHangs         difference = "StopContainer that does not return"
	hookRunsAgain     difference = "preStop hook when a kill is tried again"
	specIsMissing     difference = "container that the spec does not have"
	orderHasGap       difference = "sidecar order across one that does not run"
	timeIsTruncated   difference = "used time of hook and wait"
	hookPanics        difference = "preStop hook that panics"
)

const (
	never     time.Duration = math.MaxInt64 / 4
	killTries               = 3                // how often a failing kill is tried; a pod worker would not stop trying
	killPause               = 10 * time.Second // of the pod worker, from a failed kill to the next
)

// TestKillIsTheKubelets compares random kills, one per seed, with a model of the kubelet's kill. They may differ only as the table
// of internal/fork/README.md says: a class of differences (type difference) has the name of a row. Every class occurs in some kill,
// so that none is in the table for nothing. Half of the kills are as in a fork of the kubelet (InFork): the request names the
// containers, and the kubelet, not the terminator, retries a failed kill.
//
//	KUBEGRACE_SIM_SEEDS=1000000 go test -run TestKillIsTheKubelets -timeout 0 ./lifecycle
//	KUBEGRACE_SIM_SEED=4711 go test -run TestKillIsTheKubelets -v ./lifecycle # one seed, with its timelines
func TestKillIsTheKubelets(t *testing.T) {
	const enoughSeeds = 5_000 // so that each class occurs
	var mu sync.Mutex
	occurs := map[bool]map[difference]int{false: {}, true: {}} // how often each class occurs, by InFork
	played := seeds.Play(t, enoughSeeds, func(t *testing.T, seed uint64) (func() string, error) {
		compared := compareKills(t, seed)
		mu.Lock()
		defer mu.Unlock()
		for _, class := range compared.classes {
			occurs[compared.in.InFork][class]++
		}
		return compared.String, compared.err()
	})
	for _, inFork := range []bool{false, true} {
		t.Logf("in a fork: %t, differences: %v", inFork, occurs[inFork])
		for class := range killDifferences(inFork) {
			if played >= enoughSeeds { // fewer, as with KUBEGRACE_SIM_SEED, need not have each class
				require.NotZero(t, occurs[inFork][class], "no seed shows this class, in a fork: %t: %s", inFork, class)
			}
		}
	}
}

// killDifferences returns the classes of differences that can occur. In a fork the kubelet retries a failed
// kill; in another agent nobody does, so that the terminator must.
func killDifferences(inFork bool) map[difference]bool {
	differs := map[difference]bool{
		hookOutlivesGrace: true, execWithoutLimit: true, specIsMissing: true, orderHasGap: true, timeIsTruncated: true, hookPanics: true,
	}
	if inFork {
		differs[hookRunsAgain] = true
	} else {
		differs[sleepOutlivesExit], differs[stopFails], differs[stopHangs] = true, true, true
	}
	return differs
}

// killComparison has three timelines of the same kill. explained and ours must be equal.
type killComparison struct {
	in        killInput
	kubelet   killTimeline // the kubelet's, by the model
	explained killTimeline // the kubelet's with all classes of differences, by the model
	ours      killTimeline // kubegrace's, played
	classes   []difference // those that this kill shows: without one of them, explained would be another timeline
}

// compareKills draws the kill of a seed and plays it with kubegrace. The model computes the same kill as the kubelet
// does it, and with all classes of differences. A class is added to classes if the kill without it has another timeline.
func compareKills(t *testing.T, seed uint64) *killComparison {
	t.Helper()
	c := &killComparison{in: drawKill(seed)}
	watchdog := time.AfterFunc(simTimeLimit, func() { panic(fmt.Sprintf("seed %d does not end: something is busy without waiting", seed)) })
	defer watchdog.Stop()
	synctest.Test(t, func(t *testing.T) { c.ours = playKill(t, c.in).sorted() })
	model := func(differs map[difference]bool) killTimeline {
		k := kubeletKill{killInput: c.in, differs: differs}
		return k.run().sorted()
	}
	differs := killDifferences(c.in.InFork)
	c.kubelet, c.explained = model(nil), model(differs)
	for class := range differs {
		others := maps.Clone(differs)
		if delete(others, class); !slices.Equal(model(others), c.explained) {
			c.classes = append(c.classes, class)
		}
	}
	return c
}

// err returns an error if kubegrace does something that neither the kubelet does nor a class of differences explains. It
// also does if two classes make the same difference: then neither of them can be counted.
func (c *killComparison) err() error {
	if !slices.Equal(c.kubelet, c.explained) && len(c.classes) == 0 {
		return errors.New("a difference has no single class")
	}
	lineOf := func(l killTimeline, i int) killTimeline { return l[min(i, len(l)):min(i+1, len(l))] } // none after the last line
	for i := range max(len(c.ours), len(c.explained)) {
		ours, explained := lineOf(c.ours, i), lineOf(c.explained, i)
		if !slices.Equal(ours, explained) {
			return fmt.Errorf("a difference has no class: kubegrace %v, the model %v", ours, explained)
		}
	}
	return nil
}

// String returns the input, each container on a line of its own, and all timelines.
func (c *killComparison) String() string {
	in, err := json.Marshal(c.in)
	return fmt.Sprintf("%s %v\ndifferences: %q\nthe kubelet:\n%v\nthe kubelet with these differences:\n%v\nkubegrace:\n%v",
		bytes.ReplaceAll(in, []byte(`{"Name"`), []byte("\n{\"Name\"")), err, c.classes, c.kubelet, c.explained, c.ours)
}

// killTimeline is what happens in the kill of a pod, as lines that can be compared.
type killTimeline []killLine

type killLine struct {
	at        time.Duration
	container string // or thePod
	text      string
}

// thePod stands for the name of a container in a line about the whole pod.
const thePod = ""

// add adds a line about a container or, if container is thePod, about the whole pod.
func (l *killTimeline) add(at time.Duration, container, format string, args ...any) {
	*l = append(*l, killLine{at: at, container: container, text: fmt.Sprintf(format, args...)})
}

// sorted sorts the lines by time, container and text.
func (l killTimeline) sorted() killTimeline {
	slices.SortFunc(l, func(a, b killLine) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.container, b.container), cmp.Compare(a.text, b.text))
	})
	return l
}

// String returns the lines as a text.
func (l killTimeline) String() string {
	var text strings.Builder
	for _, line := range l {
		fmt.Fprintf(&text, "%14v %-9s %s\n", line.at, line.container, line.text)
	}
	return text.String()
}

// stopContainer models the runtime's StopContainer, called at the time at: it sends the stop signal, and SIGKILL when the
// timeout of seconds has passed. If the call hangs, the kubelet's client gives up 2 minutes after the timeout.
func (k *kubeletKill) stopContainer(c killContainer, at time.Duration, seconds int64) (returned time.Duration, answer stopReply) {
	k.lines.add(at, c.Name, "StopContainer with timeout %d", seconds)
	if k.endsAt[c.Name] <= at {
		return at, stopSucceeds
	}
	k.calls[c.Name]++
	switch answer := c.answer(k.calls[c.Name]); answer {
	case stopRefused:
		return at + c.RefusalTakes, answer
	case stopHung:
		return at + inSeconds(seconds) + 2*time.Minute, answer
	default:
		k.endsAt[c.Name] = min(k.endsAt[c.Name], at+c.EndsAfter, at+inSeconds(seconds))
		return k.endsAt[c.Name], answer
	}
}

// inSeconds converts seconds to a duration.
func inSeconds(seconds int64) time.Duration { return time.Duration(seconds) * time.Second }

// killInput is a pod with its containers, and a kill of it.
type killInput struct {
	InFork        bool                   // the request names the containers, and the caller retries a failed kill
	OnlyContainer string                 // the container that is killed; "": the pod is
	Probe         graceperiod.KillReason // the probe for which OnlyContainer is killed; "": none has failed
	Message       string                 // of the Killing event of OnlyContainer; "": the kubelet's
	Grace         *int64                 // of the pod's spec, in seconds, like the next two fields
	DeletionGrace *int64                 // of the pod's deletion
	Override      *int64                 // of the request
	Containers    []killContainer        // sidecars in their order, then all others
}

type killContainer struct {
	Name         string
	Role         killRole
	ProbeGrace   map[graceperiod.KillReason]*int64
	IsRunning    bool
	ExitsAt      time.Duration // when it exits without a stop, from the first kill; 0: never
	Hook         killHook
	HookTakes    time.Duration
	HookFails    hookEnd
	EndsAfter    time.Duration // from the stop signal to its end
	Refuses      int           // how many StopContainer calls fail, beginning with the first
	RefusalTakes time.Duration // how long each of these calls takes
	Hangs        bool          // the StopContainer call after these does not return
}

type (
	killRole  string
	killHook  string
	hookEnd   string
	stopReply string
)

const (
	roleSidecar   killRole = "sidecar"
	roleMain      killRole = "main"
	roleInit      killRole = "init"
	roleEphemeral killRole = "ephemeral"
	roleMissing   killRole = "missing"

	noHook    killHook = ""
	execHook  killHook = "exec"
	httpHook  killHook = "httpGet"
	sleepHook killHook = "sleep"
	tcpHook   killHook = "tcpSocket"

	hookSucceeds     hookEnd = ""
	hookReturnsError hookEnd = "error"
	hookPanicked     hookEnd = "panic"

	stopSucceeds stopReply = ""
	stopRefused  stopReply = "refused"
	stopHung     stopReply = "hung"
)

// answer returns what the StopContainer call with this number does; the first call is 1.
func (c killContainer) answer(call int) stopReply {
	switch {
	case call <= c.Refuses:
		return stopRefused
	case call == c.Refuses+1 && c.Hangs:
		return stopHung
	default:
		return stopSucceeds
	}
}

// drawKill draws the input of a seed. Most durations have odd nanoseconds, so that no two sums of them are equal
// by chance: the order of what happens at the same time is undefined.
func drawKill(seed uint64) killInput {
	rng := rand.New(rand.NewPCG(seed, 42)) //nolint:gosec // must be reproducible
	oneIn := func(n int) bool { return rng.IntN(n) == 0 }
	seconds := func(share int, most int64) *int64 { // in one of share cases it draws a number from 0 to most, else nil
		if !oneIn(share) {
			return nil
		}
		return ptr.To(rng.Int64N(most + 1))
	}
	in := killInput{InFork: oneIn(2), Grace: ptr.To(rng.Int64N(31)), DeletionGrace: seconds(6, 20), Override: seconds(3, 20)}
	if oneIn(8) {
		in.Grace = nil
	}
	hangs := false // StopContainer hangs for a container: at most for one, because the order of two failures at one time is undefined
	add := func(role killRole, n int) {
		for i := range n {
			c := killContainer{Name: string(role) + strconv.Itoa(i), Role: role, IsRunning: !oneIn(5), EndsAfter: upTo(rng, 12*time.Second)}
			if oneIn(5) {
				c.EndsAfter = time.Hour
			}
			if role != roleEphemeral && role != roleMissing {
				c.drawHook(rng)
				c.ProbeGrace = map[graceperiod.KillReason]*int64{graceperiod.ReasonLivenessProbe: seconds(2, 40), graceperiod.ReasonStartupProbe: seconds(2, 40)}
			}
			switch rng.IntN(10) {
			case 0, 1:
				c.ExitsAt = upTo(rng, 20*time.Second)
			case 2:
				c.Refuses, c.RefusalTakes = 1+rng.IntN(2), upTo(rng, 3*time.Second)
			case 3:
				c.Refuses, c.RefusalTakes = rng.IntN(5), upTo(rng, 5*time.Second)
				c.Hangs = oneIn(3) && !hangs
			case 4:
				c.Hangs = oneIn(2) && !hangs
			}
			hangs = hangs || c.Hangs
			in.Containers = append(in.Containers, c)
		}
	}
	// The containers, and in some inputs a kill of only one of them.
	add(roleSidecar, rng.IntN(5))
	add(roleMain, 1+rng.IntN(2))
	add(roleInit, rng.IntN(2))
	if oneIn(6) {
		add(roleEphemeral, 1)
	}
	if oneIn(6) {
		add(roleMissing, 1)
	}
	if c := in.Containers[rng.IntN(len(in.Containers))]; c.IsRunning && oneIn(4) {
		in.OnlyContainer = c.Name
		in.Probe = []graceperiod.KillReason{"", graceperiod.ReasonLivenessProbe, graceperiod.ReasonStartupProbe}[rng.IntN(3)]
		in.Message = "It has failed"
	}
	return in
}

// upTo draws a duration below a limit.
func upTo(rng *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(limit)))
}

// drawHook draws the preStop hook of a container.
func (c *killContainer) drawHook(rng *rand.Rand) {
	c.Hook = []killHook{noHook, noHook, execHook, execHook, httpHook, sleepHook, sleepHook, tcpHook}[rng.IntN(8)]
	switch c.Hook {
	case noHook:
	case sleepHook:
		c.HookTakes = inSeconds(rng.Int64N(20))
	case tcpHook:
		c.HookFails = hookReturnsError // the kubelet cannot run a tcpSocket hook
	case execHook, httpHook:
		c.HookTakes = upTo(rng, 25*time.Second)
		switch rng.IntN(8) {
		case 0, 1:
			c.HookFails = hookReturnsError
		case 2:
			c.HookFails = hookPanicked
		}
	}
}

// pod returns the Pod object of the input.
func (in *killInput) pod() *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid", DeletionGracePeriodSeconds: in.DeletionGrace}}
	pod.Spec.TerminationGracePeriodSeconds, pod.Status.PodIP = in.Grace, "10.0.0.1"
	for _, c := range in.Containers {
		spec := v1.Container{Name: c.Name}
		if c.Hook != noHook {
			spec.Lifecycle = &v1.Lifecycle{PreStop: c.handler()}
		}
		spec.LivenessProbe = &v1.Probe{TerminationGracePeriodSeconds: c.ProbeGrace[graceperiod.ReasonLivenessProbe]}
		spec.StartupProbe = &v1.Probe{TerminationGracePeriodSeconds: c.ProbeGrace[graceperiod.ReasonStartupProbe]}
		switch c.Role {
		case roleSidecar:
			spec.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, spec)
		case roleInit:
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, spec)
		case roleMain:
			pod.Spec.Containers = append(pod.Spec.Containers, spec)
		case roleEphemeral:
			pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: c.Name}})
		case roleMissing:
		}
	}
	return pod
}

// handler returns the preStop hook of the container as the Pod object has it.
func (c killContainer) handler() *v1.LifecycleHandler {
	switch c.Hook {
	case execHook:
		return &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"true"}}}
	case httpHook:
		return &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Path: "/" + c.Name, Port: intstr.FromInt32(80)}}
	case sleepHook:
		return &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: int64(c.HookTakes / time.Second)}}
	default:
		return &v1.LifecycleHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(80)}}
	}
}

// playKill lets a terminator kill the pod, and returns what happened.
func playKill(t *testing.T, in killInput) killTimeline {
	// Make the world and the terminator.
	ctx := klog.NewContext(t.Context(), klog.Logger{})
	pod, w := in.pod(), &killWorld{killInput: in, began: time.Now(), runs: map[string]*killRun{}}
	w.hooks = lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{Commands: w, HTTP: w})
	for _, c := range in.Containers {
		run := &killRun{killContainer: c, world: w, ended: make(chan struct{})}
		w.runs[c.Name] = run
		if c.IsRunning {
			run.endIn(cmp.Or(c.ExitsAt, never))
		} else {
			close(run.ended)
		}
	}
	options := lifecycle.TerminatorOptions{Runtime: w, Hooks: w, Exits: w, Events: w}
	if in.InFork {
		options.Runtime, options.Exits = lifecycle.RuntimeFunc(w.StopContainer), nil
	}
	terminator, err := lifecycle.NewTerminator(options)
	require.NoError(t, err)
	// Kill the pod, or its OnlyContainer if that is running, until a kill succeeds.
	for range killTries {
		running, err := w.Running(ctx, pod)
		require.NoError(t, err)
		if in.OnlyContainer == "" {
			request := lifecycle.Request{GracePeriodSeconds: in.Override, OneAttempt: in.InFork}
			if in.InFork {
				request.Containers = append([]lifecycle.Container{}, running...)
			}
			_, err = terminator.KillPod(ctx, pod, request)
		} else if i := slices.IndexFunc(running, func(c lifecycle.Container) bool { return c.Name == in.OnlyContainer }); i >= 0 {
			_, err = terminator.KillContainer(ctx, pod, running[i], lifecycle.ContainerRequest{
				GracePeriodSeconds: in.Override, Message: in.Message, OneAttempt: in.InFork, Reason: cmp.Or(in.Probe, graceperiod.ReasonUnknown),
			})
		}
		w.add(thePod, "kill returned, failed: %t", err != nil)
		if err == nil {
			break
		}
		if in.OnlyContainer == "" { // as the pod worker, which is the caller in a kubelet, records it
			w.add(thePod, "FailedKillPod")
		}
		<-time.After(killPause)
	}
	<-time.After(time.Hour) // what still happens to containers that were not killed is in the timeline too
	require.NoError(t, terminator.Close(ctx))
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, run := range w.runs {
		if run.timer != nil {
			run.timer.Stop()
		}
	}
	return w.lines
}

// killWorld is the fake runtime, the hook runner and the event recorder of a kill. It notes every call with its time.
type killWorld struct {
	killInput

	began time.Time
	hooks lifecycle.HandlerRunner
	runs  map[string]*killRun // by container name

	mu    sync.Mutex // guards the fields below, and those of the runs
	lines killTimeline
}

// The ID of a container is idPrefix and its name.
const idPrefix = "id-"

// run returns the container with an ID.
func (w *killWorld) run(id string) *killRun { return w.runs[strings.TrimPrefix(id, idPrefix)] }

// killRun is a container of a killWorld, which runs at most once.
type killRun struct {
	killContainer

	world *killWorld
	calls int
	endAt time.Time
	timer *time.Timer
	ended chan struct{}
}

// add notes what happens now. It locks the mutex.
func (w *killWorld) add(container, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines.add(time.Since(w.began), container, format, args...)
}

// endIn ends the container after a time, unless it ends earlier.
func (r *killRun) endIn(after time.Duration) {
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	at := time.Now().Add(after)
	if r.timer == nil || at.Before(r.endAt) && r.timer.Stop() { // Stop returns false if the container is ending now
		r.endAt = at
		r.timer = time.AfterFunc(after, func() {
			r.world.add(r.Name, "ended")
			close(r.ended)
		})
	}
}

func (r *killRun) hasEnded() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// Running lists the containers that have not ended.
func (w *killWorld) Running(context.Context, *v1.Pod) (running []lifecycle.Container, err error) {
	for _, c := range w.Containers {
		if !w.runs[c.Name].hasEnded() {
			running = append(running, lifecycle.Container{Name: c.Name, ID: idPrefix + c.Name, Began: w.began})
		}
	}
	return running, nil
}

// StopContainer stops a container, fails or hangs, as the container's fields say. In a fork a call that hangs fails 2
// minutes after its timeout, because there the kubelet's client is in between.
func (w *killWorld) StopContainer(ctx context.Context, id string, seconds int64) error {
	r := w.run(id)
	w.add(r.Name, "StopContainer with timeout %d", seconds)
	if r.hasEnded() {
		return lifecycle.ErrContainerNotFound
	}
	w.mu.Lock()
	r.calls++
	answer := r.answer(r.calls)
	w.mu.Unlock()
	switch answer {
	case stopRefused:
		<-time.After(r.RefusalTakes)
		return errSimRefused
	case stopHung:
		timeout := never
		if w.InFork {
			timeout = inSeconds(seconds) + 2*time.Minute
		}
		select {
		case <-time.After(timeout):
			return context.DeadlineExceeded
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	default:
		r.endIn(min(r.EndsAfter, inSeconds(seconds)))
		<-r.ended
		return nil
	}
}

// Exited implements lifecycle.ExitWatcher.
func (w *killWorld) Exited(id string) <-chan struct{} { return w.run(id).ended }

// Run runs a hook with the package's runner, and notes its begin and end.
func (w *killWorld) Run(ctx context.Context, id string, pod *v1.Pod, c *v1.Container, handler *v1.LifecycleHandler) (string, error) {
	w.add(c.Name, "hook began")
	defer w.add(c.Name, "hook returned")
	return w.hooks.Run(ctx, id, pod, c, handler)
}

// RunInContainer runs the command of an exec hook.
func (w *killWorld) RunInContainer(ctx context.Context, id string, _ []string, timeout time.Duration) ([]byte, error) {
	r := w.run(id)
	w.add(r.Name, "command with timeout %v", timeout)
	return nil, r.runHook(ctx)
}

// Do answers an httpGet hook.
func (w *killWorld) Do(request *http.Request) (*http.Response, error) {
	err := w.runs[strings.TrimPrefix(request.URL.Path, "/")].runHook(request.Context())
	return &http.Response{StatusCode: http.StatusInternalServerError, Body: io.NopCloser(strings.NewReader(""))}, err
}

// runHook waits for HookTakes, and then returns or panics as HookFails says. If ctx ends first, it returns the cause.
func (r *killRun) runHook(ctx context.Context) error {
	select {
	case <-time.After(r.HookTakes):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	switch r.HookFails {
	case hookReturnsError:
		return errSimHook
	case hookPanicked:
		panic("the simulated hook panics")
	default:
		return nil
	}
}

// Event records an event about the pod, or about the container in the object's field path.
func (w *killWorld) Event(object apiruntime.Object, _, reason, message string) {
	reference, _ := object.(*v1.ObjectReference)
	if reference == nil {
		w.add(thePod, "%s", reason)
		return
	}
	_, name, _ := strings.Cut(reference.FieldPath, "{")
	w.add(strings.TrimSuffix(name, "}"), "%s: %s", reason, message)
}
