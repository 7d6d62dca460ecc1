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

// world is what is around a manager under stress: code that is slow, hangs, fails and
// panics by chance, and notes what the manager does wrong.
type world struct {
	ctx    context.Context //nolint:containedctx // of the test, for functions that get none
	began  time.Time
	killer shutdowntest.Killer // of pods that end in the end
	over   chan struct{}       // closed: nothing hangs, fails or panics any more

	mu       sync.Mutex // guards all below
	rng      *rand.Rand
	wild     map[string]bool // which parts misbehave
	listed   []*v1.Pod
	pods     map[string]*stressPod
	marking  int // calls of MarkNotReady under way
	restores int // and of RestoreReadiness
	wrong    []string
}

// stressPod is what is known of a pod.
type stressPod struct {
	how     int // its killer does
	calls   int
	running int             // calls under way
	over    bool            // the last call was the last word
	ctx     context.Context //nolint:containedctx // of the last call: nothing is tried again after it
	ended   bool            // a call has returned without an error
	until   time.Time       // when its grace ends at the latest; zero: it was not signalled
	history []string        // when it was signalled, and with what
	marked  bool            // at the API server
}

// What the killer of a pod does.
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

func (w *world) chance(of int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(of) == 0
}

func (w *world) pick(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

// blame notes what the manager has done wrong. The mutex is held.
func (w *world) blame(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

func (w *world) blamed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.wrong)
}

func (w *world) isOver() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// misbehave does, in one call of three of a part that is wild, what embedders do.
func (w *world) misbehave(ctx context.Context, part string) error {
	w.mu.Lock()
	way, wild := w.rng.IntN(21), w.wild[part]
	takes := time.Duration(w.rng.IntN(4000)) * time.Millisecond
	w.mu.Unlock()
	if !wild || w.isOver() {
		return nil
	}
	switch way {
	case 0, 1:
		return w.wait(ctx, takes)
	case 2:
		return w.wait(ctx, time.Hour)
	case 3:
		<-w.over
	case 4:
		panic("by chance")
	case 5:
		runtime.Goexit()
	case 6:
		return errStress
	}
	return nil
}

func (w *world) wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.over:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// KillPod kills as the pod has it.
func (w *world) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (result shutdown.KillResult, err error) {
	w.mu.Lock()
	p := w.pods[pod.Name]
	w.signalled(p, pod.Name, req.GracePeriodSeconds)
	p.ctx = ctx
	how, n := p.how, p.calls
	w.mu.Unlock()
	last := true // an attempt that does not return is the last
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		p.running--
		p.over = last
		p.ended = p.ended || err == nil && last && how != killExits
	}()
	if w.isOver() {
		how = killEnds
	}
	switch {
	case how == killHangs:
		err = w.wait(ctx, time.Hour)
	case how == killHangsDeaf:
		<-w.over
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

// signalled checks that the grace of a pod only gets shorter, until its killer has had the
// last word. Two kills of a pod that are both tried again cut it to whole seconds each at its
// own moment. The mutex is held.
func (w *world) signalled(p *stressPod, name string, seconds int64) {
	const lag = time.Second + 150*time.Millisecond
	until := time.Now().Add(time.Duration(seconds) * time.Second)
	fresh := p.until.IsZero() || p.running == 0 && (p.over || p.ctx.Err() != nil)
	if !fresh && seconds > 0 && until.After(p.until.Add(lag)) {
		w.blame("pod %s (%d) was given %d s at %v, which is %v more than before: %v", name, p.how, seconds, time.Since(w.began), until.Sub(p.until), p.history)
	}
	if fresh || until.Before(p.until) {
		p.until = until
	}
	p.over = false
	p.history = append(p.history, fmt.Sprintf("%v: %d", time.Since(w.began), seconds))
	p.calls++
	p.running++
}

func (w *world) list() []*v1.Pod {
	_ = w.misbehave(w.ctx, "pods")
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.listed)
}

func (w *world) policy(shutdown.Kind) shutdown.PodPolicy {
	_ = w.misbehave(w.ctx, "policy")
	return []shutdown.PodPolicy{shutdown.PolicySetTerminal, shutdown.PolicyDelete, shutdown.PolicyLeaveAsIs, "unknown"}[w.pick(4)]
}

func (w *world) hold(ctx context.Context) error { return w.misbehave(ctx, "hold") }

func (w *world) onRelease(ctx context.Context) { _ = w.misbehave(ctx, "release") }

func (w *world) onPlan(ctx context.Context, _ plan.Plan) { _ = w.misbehave(ctx, "plan") }

func (w *world) onReport(ctx context.Context, report shutdown.Report) {
	w.check(report)
	_ = w.misbehave(ctx, "report")
}

// check finds pods that are listed twice.
func (w *world) check(report shutdown.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := map[string]bool{}
	for _, pod := range report.Pods {
		if seen[pod.Name] {
			w.blame("pod %s is in the report twice", pod.Name)
		}
		seen[pod.Name] = true
	}
}

// WaitForAllPodsUnmount is the waiter for volumes.
func (w *world) WaitForAllPodsUnmount(ctx context.Context, _ []*v1.Pod) error {
	return w.misbehave(ctx, "volumes")
}

// Event is the recorder.
func (w *world) Event(k8sruntime.Object, string, string, string) {
	_ = w.misbehave(w.ctx, "events")
}

// The reporters know more from one to the next.
type (
	stressPublisher struct{ w *world }
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
		s.w.blame("the final status of pod %s, which may still run", pod.Name)
	}
	s.w.mu.Unlock()
	return s.w.misbehave(ctx, "flush")
}

func (s stressMarker) MarkNotReady(ctx context.Context, pod *v1.Pod) error {
	w := s.w
	w.count(&w.marking, &w.restores)
	defer w.uncount(&w.marking)
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
	w.count(&w.restores, &w.marking)
	defer w.uncount(&w.restores)
	if err := w.misbehave(ctx, "marks"); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods[pod.Name].marked = false
	return nil
}

// count begins a call that must not go beside others.
func (w *world) count(mine, others *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*mine++
	if *others > 0 {
		w.blame("a pod is marked and restored at the same time")
	}
}

func (w *world) uncount(mine *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*mine--
}
