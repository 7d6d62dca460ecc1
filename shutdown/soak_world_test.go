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

// soakWorld is the part of the node that outlives the agents: the containers, the API server,
// and what the test knows of each pod. It records what agents do wrong.
type soakWorld struct {
	mu             sync.Mutex // guards all below
	rng            *rand.Rand
	rt             *lifecycletest.Runtime
	pods           map[types.UID]*soakPod
	listed         []*v1.Pod
	podCount       int  // the number of pods that were made so far
	wantFullGrace  bool // the first kill of a pod has at least minSeconds
	server         serverState
	publishedState shutdown.NodeState // the last one
	reports        []shutdown.Report  // of this round, from OnReport
	violations     []string
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

// soakPod is one life of a pod. A static pod that is started again under the same UID gets
// another soakPod.
type soakPod struct {
	pod          *v1.Pod
	started      time.Time
	containerIDs map[string]string // by the names of the containers
	minSeconds   int64             // the least grace period of the first kill
	kills        []soakKill
	running      int       // calls of KillPod under way
	ended        time.Time // when KillPod first returned without an error; zero: it has not
	flushed      bool      // the final status was acknowledged
	endUnknown   bool      // no agent knows of the end, or the pod is to be started again
}

// soakKill is one call of KillPod.
type soakKill struct {
	at      time.Time
	seconds int64
}

var errServer = errors.New("the API server is away")

func (w *soakWorld) randomInt(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

func (w *soakWorld) randomDuration(d time.Duration) time.Duration {
	return time.Duration(w.randomInt(int(d/time.Millisecond))) * time.Millisecond
}

// addViolation records that something is wrong. The caller holds the mutex.
func (w *soakWorld) addViolation(format string, args ...any) {
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

// newPod starts a pod and lists it. An empty name or UID stands for a new one.
func (w *soakWorld) newPod(name string, uid types.UID) *v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.podCount++
	if name == "" {
		name = fmt.Sprint("pod-", w.podCount)
	}
	if uid == "" {
		uid = types.UID(fmt.Sprint("uid-", w.podCount))
	}
	priority := []int32{0, 0, 1000, topPriority}[w.rng.IntN(4)]
	pod := shutdowntest.Pod(name, priority, int64(w.rng.IntN(50))-5)
	if pod.UID = uid; strings.HasPrefix(name, "static-") {
		pod.Annotations = map[string]string{staticpod.SourceAnnotation: "file"}
	}
	p := &soakPod{pod: pod, started: time.Now(), containerIDs: map[string]string{}, minSeconds: 20}
	if priority == topPriority {
		p.minSeconds = 10
	}
	if seconds := pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		p.minSeconds = min(p.minSeconds, *seconds)
	}
	for i := range 1 + w.rng.IntN(2) {
		c := v1.Container{Name: fmt.Sprint("c", i)}
		if w.rng.IntN(3) == 0 {
			c.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: int64(1 + w.rng.IntN(15))}}}
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
		p.containerIDs[c.Name] = fmt.Sprintf("%s/%d/%s", uid, w.podCount, c.Name)
		w.rt.Start(p.containerIDs[c.Name], w.randomScript())
	}
	w.pods[uid] = p
	w.listed = append(slices.Clone(w.listed), pod)
	return pod
}

// randomScript returns how a container behaves. The caller holds the mutex.
func (w *soakWorld) randomScript() lifecycletest.Script {
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

// removeFromList removes a pod from the list. Its containers go on.
func (w *soakWorld) removeFromList(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listed = slices.DeleteFunc(slices.Clone(w.listed), func(pod *v1.Pod) bool { return pod != nil && pod.UID == uid })
}

// listPods is Options.Pods. The list sometimes contains nil and the copy of a pod.
func (w *soakWorld) listPods() []*v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	pods := slices.Clone(w.listed)
	if len(pods) > 0 && w.rng.IntN(4) == 0 {
		pods = append(pods, nil, pods[w.rng.IntN(len(pods))].DeepCopy())
	}
	return pods
}

// isRunning reports whether a container of the pod runs. The caller holds the mutex.
func (w *soakWorld) isRunning(p *soakPod) bool {
	for _, id := range p.containerIDs {
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
	for name, id := range w.pods[pod.UID].containerIDs {
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
	for _, name := range slices.Sorted(maps.Keys(p.containerIDs)) {
		state := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
		if code, exited := w.rt.ExitCode(p.containerIDs[name]); exited {
			state = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code}}
		}
		status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{Name: name, ContainerID: p.containerIDs[name], State: state})
	}
	return status
}

// recordKills returns a killer that calls the given one, records its calls, and checks their
// grace periods and results.
func (w *soakWorld) recordKills(over shutdown.PodKiller) shutdown.PodKillerFunc {
	return func(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
		w.mu.Lock()
		p := w.pods[pod.UID]
		if len(p.kills) == 0 && w.wantFullGrace && *req.GracePeriodSeconds < p.minSeconds {
			w.addViolation("pod %s was granted %d s, and should have %d", pod.Name, *req.GracePeriodSeconds, p.minSeconds)
		}
		p.kills = append(p.kills, soakKill{time.Now(), *req.GracePeriodSeconds})
		p.running++
		w.mu.Unlock()
		result, err := over.KillPod(ctx, pod, req)
		w.mu.Lock()
		defer w.mu.Unlock()
		p.running--
		if err == nil && w.isRunning(p) {
			w.addViolation("pod %s has ended by KillPod, but runs", pod.Name)
		}
		if err == nil && p.ended.IsZero() {
			p.ended = time.Now()
		}
		return result, err
	}
}

// answer waits for the answer of the API server and returns its error.
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

// PublishNode records the state if the API server accepts it.
func (w *soakWorld) PublishNode(ctx context.Context, state shutdown.NodeState) error {
	if err := w.answer(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.publishedState = state
	return nil
}

// FlushPod records that a final status was sent if the API server accepts it.
func (w *soakWorld) FlushPod(ctx context.Context, pod *v1.Pod) error {
	w.mu.Lock()
	if p := w.pods[pod.UID]; p != nil && w.isRunning(p) {
		w.addViolation("pod %s runs, but its final status is sent", pod.Name)
	}
	w.mu.Unlock()
	if err := w.answer(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.pods[pod.UID]; p != nil {
		p.flushed = true
	}
	return nil
}

// MarkNotReady returns the answer of the API server.
func (w *soakWorld) MarkNotReady(ctx context.Context, _ *v1.Pod) error { return w.answer(ctx) }

// RestoreReadiness returns the answer of the API server.
func (w *soakWorld) RestoreReadiness(ctx context.Context, _ *v1.Pod) error { return w.answer(ctx) }

// onReport is Options.OnReport. It checks that each pod is in the report once and that no
// running pod has ended by it.
func (w *soakWorld) onReport(_ context.Context, report shutdown.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports = append(w.reports, report)
	seen := map[types.UID]bool{}
	for _, pod := range report.Pods {
		if seen[pod.UID] {
			w.addViolation("pod %s is in the report twice", pod.Name)
		}
		seen[pod.UID] = true
		if p := w.pods[pod.UID]; p != nil && pod.Ended.After(p.started) && w.isRunning(p) {
			w.addViolation("pod %s has ended by the report, but runs", pod.Name)
		}
	}
}

// markDeleted replaces a pod by a copy that somebody has deleted with a grace period, as an
// agent's watch would do.
func (w *soakWorld) markDeleted(uid types.UID, seconds int64) *v1.Pod {
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
	p.pod, p.minSeconds = pod, min(p.minSeconds, seconds)
	return pod
}
