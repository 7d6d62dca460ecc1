package shutdown_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// stressWorld is the embedder's code, which is slow, hangs, fails and panics at random. It
// records what the manager does wrong.
type stressWorld struct {
	ctx        context.Context //nolint:containedctx // of the test, for functions that get none
	began      time.Time
	killer     shutdowntest.Killer // ends pods; their kills may hang or fail before
	faultsOver chan struct{}       // closed: nothing hangs, fails or panics any more

	mu          sync.Mutex // guards all below
	rng         *rand.Rand
	misbehaving map[string]bool // the parts whose calls misbehave at random
	listed      []*v1.Pod
	pods        map[string]*stressPod
	marking     map[string]int // calls of MarkNotReady under way, by the pod's name
	restores    map[string]int // the same of RestoreReadiness
	violations  []string
}

// stressPod is what is known of a pod.
type stressPod struct {
	killWay  int             // one of the constants below
	calls    int             // of KillPod
	running  int             // calls of KillPod under way
	finished bool            // the manager does not repeat the last call
	ctx      context.Context //nolint:containedctx // of the last call, which is not repeated when this has ended
	ended    bool            // a call has returned without an error
	graceEnd time.Time       // the end of the grace period that was granted; zero: the pod was not signalled
	history  []string        // times and grace periods of the calls
	marked   bool            // not ready at the API server
}

// What KillPod does with a pod.
const (
	killEnds = iota
	killHangs
	killHangsDeaf
	killFailsAWhile
	killFails
	killFailsForGood
	killPanicsAWhile
	killExits
	killWays
)

var errStress = errors.New("by chance")

func (w *stressWorld) chance(of int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(of) == 0
}

func (w *stressWorld) randomInt(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

// addViolation records what the manager has done wrong. The caller holds the mutex.
func (w *stressWorld) addViolation(format string, args ...any) {
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

func (w *stressWorld) allViolations() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.violations)
}

func (w *stressWorld) areFaultsOver() bool {
	select {
	case <-w.faultsOver:
		return true
	default:
		return false
	}
}

// misbehave waits, hangs, panics, ends the goroutine or returns an error in one of three calls
// of a part that misbehaves.
func (w *stressWorld) misbehave(ctx context.Context, part string) error {
	w.mu.Lock()
	way, wild := w.rng.IntN(21), w.misbehaving[part]
	takes := time.Duration(w.rng.IntN(4000)) * time.Millisecond
	w.mu.Unlock()
	if !wild || w.areFaultsOver() {
		return nil
	}
	switch way {
	case 0, 1:
		return w.wait(ctx, takes)
	case 2:
		return w.wait(ctx, time.Hour)
	case 3:
		<-w.faultsOver
	case 4:
		panic("by chance")
	case 5:
		runtime.Goexit()
	case 6:
		return errStress
	}
	return nil
}

func (w *stressWorld) wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.faultsOver:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// KillPod does what the killWay of the pod says.
func (w *stressWorld) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (result shutdown.KillResult, err error) {
	w.mu.Lock()
	p := w.pods[pod.Name]
	w.checkGrace(p, pod.Name, *req.GracePeriodSeconds)
	p.ctx = ctx
	how, n := p.killWay, p.calls
	w.mu.Unlock()
	last := true // the manager does not repeat this call, as it may not return
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		p.running--
		p.finished = last
		p.ended = p.ended || err == nil && last && how != killExits
	}()
	if w.areFaultsOver() {
		how = killEnds
	}
	switch {
	case how == killHangs:
		err = w.wait(ctx, time.Hour)
	case how == killHangsDeaf:
		<-w.faultsOver
	case how == killFails || how == killFailsAWhile && n < 4:
		err, last = errStress, false
	case how == killFailsForGood:
		err = fmt.Errorf("%w: %w", errStress, shutdown.ErrNoRetry)
	case how == killPanicsAWhile && n < 3:
		err, last = errStress, false
		panic("by chance")
	case how == killExits:
		runtime.Goexit()
	}
	if err != nil {
		last = last || ctx.Err() != nil
		return result, err
	}
	return w.killer.KillPod(ctx, pod, req)
}

// checkGrace checks that the grace period of a pod only gets shorter as long as its kill goes on. Two
// kills of a pod that are both repeated round to whole seconds at different moments, which lag allows
// for. The caller holds the mutex.
func (w *stressWorld) checkGrace(p *stressPod, name string, seconds int64) {
	const lag = time.Second + 150*time.Millisecond
	until := time.Now().Add(time.Duration(seconds) * time.Second)
	// A kill that has failed may have been given up at the end of its shutdown, and one that has ended
	// may leave a call behind; then the next one is another kill. So only calls that overlap are
	// compared, and none after an end.
	fresh := p.graceEnd.IsZero() || p.running == 0 || p.ended
	if !fresh && seconds > 0 && until.After(p.graceEnd.Add(lag)) {
		w.addViolation("pod %s (%d) was given %d s at %v, which is %v more than before: %v", name, p.killWay, seconds, time.Since(w.began), until.Sub(p.graceEnd), p.history)
	}
	if fresh || until.Before(p.graceEnd) {
		p.graceEnd = until
	}
	p.finished = false
	p.history = append(p.history, fmt.Sprintf("%v: %d", time.Since(w.began), seconds))
	p.calls++
	p.running++
}

// beingKilled returns the pods with a call of KillPod under way.
func (w *stressWorld) beingKilled() (pods []*v1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, p := range w.pods {
		if p.running > 0 {
			pods = append(pods, shutdowntest.Pod(name, 0, 0))
		}
	}
	return pods
}

func (w *stressWorld) listPods() []*v1.Pod {
	_ = w.misbehave(w.ctx, "pods")
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.listed)
}

func (w *stressWorld) policy(shutdown.Kind) shutdown.PodPolicy {
	_ = w.misbehave(w.ctx, "policy")
	return []shutdown.PodPolicy{shutdown.PolicySetTerminal, shutdown.PolicyDelete, shutdown.PolicyLeaveAsIs, "unknown"}[w.randomInt(4)]
}

func (w *stressWorld) hold(ctx context.Context) error { return w.misbehave(ctx, "hold") }

func (w *stressWorld) onRelease(ctx context.Context) { _ = w.misbehave(ctx, "release") }

func (w *stressWorld) onPlan(ctx context.Context, _ plan.Plan) { _ = w.misbehave(ctx, "plan") }

func (w *stressWorld) onReport(ctx context.Context, report shutdown.Report) {
	w.checkReport(report)
	_ = w.misbehave(ctx, "report")
}

// checkReport checks that no pod is in the report twice.
func (w *stressWorld) checkReport(report shutdown.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := map[string]bool{}
	for _, pod := range report.Pods {
		if seen[pod.Name] {
			w.addViolation("pod %s is in the report twice", pod.Name)
		}
		seen[pod.Name] = true
	}
}

// WaitForAllPodsUnmount is the method of Options.Volumes.
func (w *stressWorld) WaitForAllPodsUnmount(ctx context.Context, _ []*v1.Pod) error {
	return w.misbehave(ctx, "volumes")
}

// Event is the method of Options.Events.
func (w *stressWorld) Event(k8sruntime.Object, string, string, string) {
	_ = w.misbehave(w.ctx, "events")
}

// Each of these reporters has one more optional method than the one before.
type (
	stressPublisher struct{ w *stressWorld }
	stressFlusher   struct{ stressPublisher }
	stressMarker    struct{ stressFlusher }
	stressRestorer  struct{ stressMarker }
)

func (s stressPublisher) PublishNode(ctx context.Context, _ shutdown.NodeState) error {
	return s.w.misbehave(ctx, "publish")
}

func (s stressFlusher) FlushPod(ctx context.Context, pod *v1.Pod) error {
	s.w.mu.Lock()
	if !s.w.pods[pod.Name].ended {
		s.w.addViolation("pod %s may still run, but its final status is sent", pod.Name)
	}
	s.w.mu.Unlock()
	return s.w.misbehave(ctx, "flush")
}

func (s stressMarker) MarkNotReady(ctx context.Context, pod *v1.Pod) error {
	w := s.w
	w.startMarkCall(pod.Name, w.marking, w.restores)
	defer w.endMarkCall(pod.Name, w.marking)
	if err := w.misbehave(ctx, "marks"); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods[pod.Name].marked = true
	return nil
}

func (s stressRestorer) RestoreReadiness(ctx context.Context, pod *v1.Pod) error {
	w := s.w
	w.startMarkCall(pod.Name, w.restores, w.marking)
	defer w.endMarkCall(pod.Name, w.restores)
	if err := w.misbehave(ctx, "marks"); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods[pod.Name].marked = false
	return nil
}

// startMarkCall counts a call of MarkNotReady or RestoreReadiness for a pod, which must not run at
// the same time as a call of the other one for the pod.
func (w *stressWorld) startMarkCall(pod string, mine, others map[string]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	mine[pod]++
	if others[pod] > 0 {
		w.addViolation("pod %s is marked and restored at the same time", pod)
	}
}

func (w *stressWorld) endMarkCall(pod string, mine map[string]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	mine[pod]--
}
