package shutdown_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// soakWorld is what outlives the agents of a soak: the containers, the API server, and what is
// known of every pod. It notes what agents do wrong.
type soakWorld struct {
	mu      sync.Mutex // guards all below
	rng     *rand.Rand
	rt      *lifecycletest.Runtime
	pods    map[types.UID]*soakPod
	listed  []*v1.Pod
	made    int  // pods so far
	full    bool // a pod that is signalled for the first time has at least what its bucket has
	server  serverState
	said    shutdown.NodeState // what was published last
	reports []shutdown.Report  // of this round, by their agents
	wrong   []string
}

// serverState is how the API server answers.
type serverState int

const (
	serverAnswers serverState = iota
	serverRefuses
	serverHangs
	serverIsSlow
	serverStates
)

// soakPod is one life of a pod: one that is started again under its UID is another.
type soakPod struct {
	pod     *v1.Pod
	since   time.Time
	ids     map[string]string // of its containers, by their names
	atLeast int64             // the seconds that its first kill has to have
	kills   []soakKill
	running int       // calls of KillPod under way
	ended   time.Time // when one has returned without an error first; zero: none has
	told    bool      // its final status was acknowledged
	lost    bool      // no agent knows how it has ended, or it is to be started again
}

// soakKill is one call of KillPod.
type soakKill struct {
	at      time.Time
	seconds int64
}

var errServer = errors.New("the API server is away")

func (w *soakWorld) pick(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

func (w *soakWorld) upTo(d time.Duration) time.Duration {
	return time.Duration(w.pick(int(d/time.Millisecond))) * time.Millisecond
}

// blame notes what is wrong. The mutex is held.
func (w *soakWorld) blame(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// newPod adds a pod, with the UID and the name of another one where these are given.
func (w *soakWorld) newPod(name string, uid types.UID) *v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made++
	if name == "" {
		name = fmt.Sprint("pod-", w.made)
	}
	if uid == "" {
		uid = types.UID(fmt.Sprint("uid-", w.made))
	}
	priority := []int32{0, 0, 1000, topPriority}[w.rng.IntN(4)]
	pod := shutdowntest.Pod(name, priority, int64(w.rng.IntN(50))-5)
	if pod.UID = uid; strings.HasPrefix(name, "static-") {
		pod.Annotations = map[string]string{staticpod.SourceAnnotation: "file"}
	}
	p := &soakPod{pod: pod, since: time.Now(), ids: map[string]string{}, atLeast: 20}
	if priority == topPriority {
		p.atLeast = 10
	}
	if seconds := pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		p.atLeast = min(p.atLeast, *seconds)
	}
	for i := range 1 + w.rng.IntN(2) {
		c := v1.Container{Name: fmt.Sprint("c", i)}
		if w.rng.IntN(3) == 0 {
			c.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: int64(1 + w.rng.IntN(15))}}}
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
		p.ids[c.Name] = fmt.Sprintf("%s/%d/%s", uid, w.made, c.Name)
		w.rt.Start(p.ids[c.Name], w.script())
	}
	w.pods[uid] = p
	w.listed = append(slices.Clone(w.listed), pod)
	return pod
}

// script is that of some container. The mutex is held.
func (w *soakWorld) script() lifecycletest.Script {
	s := lifecycletest.Script{IgnoreTerm: w.rng.IntN(6) == 0, ExitCode: int32(w.rng.IntN(2))}
	if w.rng.IntN(2) == 0 {
		s.ExitAfterTerm = time.Duration(w.rng.IntN(40_000)) * time.Millisecond
	}
	if w.rng.IntN(10) == 0 {
		s.ExitAfter = time.Duration(1+w.rng.IntN(60)) * time.Second
	}
	switch w.rng.IntN(12) {
	case 0:
		s.FailStops = 1 + w.rng.IntN(3)
	case 1:
		s.HangStops = 1
	}
	return s
}

// drop takes a pod out of the list: the agent does not see it any more.
func (w *soakWorld) drop(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listed = slices.DeleteFunc(slices.Clone(w.listed), func(pod *v1.Pod) bool { return pod != nil && pod.UID == uid })
}

// list is Options.Pods, which sometimes has a pod twice, and a hole.
func (w *soakWorld) list() []*v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	pods := slices.Clone(w.listed)
	if len(pods) > 0 && w.rng.IntN(4) == 0 {
		pods = append(pods, nil, pods[w.rng.IntN(len(pods))].DeepCopy())
	}
	return pods
}

// runs tells whether a container of the pod runs. The mutex is held.
func (w *soakWorld) runs(p *soakPod) bool {
	for _, id := range p.ids {
		if _, exited := w.rt.ExitCode(id); !exited {
			return true
		}
	}
	return false
}

// containers is Options.Containers of the killer.
func (w *soakWorld) containers(_ context.Context, pod *v1.Pod) []lifecycle.Container {
	w.mu.Lock()
	defer w.mu.Unlock()
	running := []lifecycle.Container{}
	for name, id := range w.pods[pod.UID].ids {
		if _, exited := w.rt.ExitCode(id); !exited {
			running = append(running, lifecycle.Container{Name: name, ID: id})
		}
	}
	return running
}

// status is Options.Status of the killer.
func (w *soakWorld) status(_ context.Context, pod *v1.Pod) *v1.PodStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, status := w.pods[pod.UID], pod.Status.DeepCopy()
	for _, name := range slices.Sorted(maps.Keys(p.ids)) {
		state := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
		if code, exited := w.rt.ExitCode(p.ids[name]); exited {
			state = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code}}
		}
		status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{Name: name, ContainerID: p.ids[name], State: state})
	}
	return status
}

// killer notes the calls of a killer, and what they have come to.
func (w *soakWorld) killer(over shutdown.PodKiller) shutdown.PodKillerFunc {
	return func(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
		w.mu.Lock()
		p := w.pods[pod.UID]
		if len(p.kills) == 0 && w.full && req.GracePeriodSeconds < p.atLeast {
			w.blame("pod %s was granted %d s, and should have %d", pod.Name, req.GracePeriodSeconds, p.atLeast)
		}
		p.kills = append(p.kills, soakKill{time.Now(), req.GracePeriodSeconds})
		p.running++
		w.mu.Unlock()
		result, err := over.KillPod(ctx, pod, req)
		w.mu.Lock()
		defer w.mu.Unlock()
		p.running--
		if err == nil && w.runs(p) {
			w.blame("pod %s is said to have ended, and runs", pod.Name)
		}
		if err == nil && p.ended.IsZero() {
			p.ended = time.Now()
		}
		return result, err
	}
}

// answer is that of the API server.
func (w *soakWorld) answer(ctx context.Context) error {
	w.mu.Lock()
	state := w.server
	w.mu.Unlock()
	switch state {
	case serverAnswers, serverStates:
	case serverRefuses:
		return errServer
	case serverHangs:
		<-ctx.Done()
		return context.Cause(ctx)
	case serverIsSlow:
		select {
		case <-time.After(400 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// PublishNode is the API server's.
func (w *soakWorld) PublishNode(ctx context.Context, state shutdown.NodeState) error {
	if err := w.answer(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = state
	return nil
}

// FlushPod is the API server's.
func (w *soakWorld) FlushPod(ctx context.Context, pod *v1.Pod) error {
	w.mu.Lock()
	if p := w.pods[pod.UID]; p != nil && w.runs(p) {
		w.blame("the final status of pod %s, which runs", pod.Name)
	}
	w.mu.Unlock()
	if err := w.answer(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.pods[pod.UID]; p != nil {
		p.told = true
	}
	return nil
}

// MarkNotReady is the API server's.
func (w *soakWorld) MarkNotReady(ctx context.Context, _ *v1.Pod) error { return w.answer(ctx) }

// RestoreReadiness is the API server's.
func (w *soakWorld) RestoreReadiness(ctx context.Context, _ *v1.Pod) error { return w.answer(ctx) }

// onReport is Options.OnReport.
func (w *soakWorld) onReport(_ context.Context, report shutdown.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports = append(w.reports, report)
	seen := map[types.UID]bool{}
	for _, pod := range report.Pods {
		if seen[pod.UID] {
			w.blame("pod %s is in the report twice", pod.Name)
		}
		seen[pod.UID] = true
		if p := w.pods[pod.UID]; p != nil && pod.Ended.After(p.since) && w.runs(p) {
			w.blame("pod %s has ended by the report, and runs", pod.Name)
		}
	}
}

// delete is what the agent does with a pod that somebody deletes with a grace of its own.
func (w *soakWorld) delete(uid types.UID, seconds int64) *v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.pods[uid]
	pod := p.pod.DeepCopy()
	now := time.Now()
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(now)), &seconds
	w.listed = slices.Clone(w.listed)
	for i := range w.listed {
		if w.listed[i] == p.pod {
			w.listed[i] = pod
		}
	}
	p.pod, p.atLeast = pod, min(p.atLeast, seconds)
	return pod
}
