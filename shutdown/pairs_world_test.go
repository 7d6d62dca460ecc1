//go:build linux && go1.25

package shutdown_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/podcondition"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// pairsSchedule has the seconds of the three buckets, by their priorities.
var pairsSchedule = []shutdownBucket{{0, 6}, {1000, 5}, {topPriority, 4}}

type shutdownBucket struct {
	priority int32
	seconds  int64
}

// pairsWorld is what outlives the agents: the host, the runtime with its pods, the API server and the
// disk. Each keeps a log, from which a run is judged.
type pairsWorld struct {
	*testing.T

	rng       *rand.Rand // of the steps; only the goroutine of the test uses it
	host      *shutdowntest.Host
	rt        *lifecycletest.Runtime
	base      string        // the folder of all state folders
	latency   time.Duration // of the API server
	late      bool          // a notice has the drain begin late
	keeps     bool          // systemd keeps the lock of a killed agent
	restart   time.Duration // from the end of an agent to the next one
	diskTakes time.Duration
	over      chan struct{} // closed at the end: the calls of killed agents return

	mu         sync.Mutex // guards all below
	draw       *rand.Rand // of what happens beside the steps
	table      *pairsTable
	boot       *boot
	disk       map[string][]byte    // the files whose writes are done
	unsynced   map[string]pairsFile // what a power cut may bring back in place of a file of disk
	loses      string               // what of unsynced the next power cut brings back
	fileDeaths []fileDeath          // that there have been
	newPods    func()               // starts the pods of a boot
	pods       []*pairsPod
	agents     []*pairsAgent
	kept       io.Closer          // the lock in systemd's FD store; nil: none
	notice     time.Time          // the deadline of the notice that stands; zero: none does
	pending    time.Time          // the deadline of the host's shutdown that is pending; zero: none is
	stays      time.Time          // when the host has said last that none is
	empty      time.Time          // until then the list is empty
	refused    time.Time          // until then the host refuses sessions
	failing    time.Time          // until then the list fails
	badLists   []pairsSpan        // when the list was empty or failed
	published  shutdown.NodeState // the last one that the API server has accepted
	reports    []pairsReport
	calls      int          // and returns of the agents' processes since the last kill
	kills      []pairsDeath // that are still to come
	troubles   []*pairsTrouble
	stuckLocks int  // whose Close hangs, with the lock held
	settled    bool // no call goes wrong any more, and what hangs goes on hanging
	violations []string
	story      []string // what has happened, for a failure
}

type pairsSpan struct {
	from, until time.Time
	empty       bool // the list was empty, else it failed
}

// pairsFile is a file whose new name is not synced until a time.
type pairsFile struct {
	former []byte // nil: there was none
	until  time.Time
}

// pairsReport is a report that an agent has passed on, or shows as its last one.
type pairsReport struct {
	shutdown.Report

	agent *pairsAgent
	at    time.Time
	shown bool // by LastReport, not passed to OnReport
}

// pairsPod is a pod of the runtime and what the API server knows of it.
type pairsPod struct {
	pod      *v1.Pod // with the conditions that the API server has
	boot     *boot
	bucket   int
	hung     bool      // no StopContainer ends it
	listed   time.Time // when the list has it first
	kills    []pairsKill
	changing int         // calls for its readiness by the running agent
	killed   time.Time   // the end of the shortest grace period
	ended    time.Time   // zero: it runs
	reached  pairsKill   // the kill that has told an agent of the end first
	told     []time.Time // when the API server has accepted its final status
	rebooted time.Time   // the end of its boot
}

// pairsKill is one call of KillPod.
type pairsKill struct {
	at      time.Time
	seconds int64
	agent   *pairsAgent
	of      *pairsShutdown // the shutdown at that time; nil: none

	terminateAll bool // its agent has called TerminateAll before
}

// until is the end of the grace period.
func (k pairsKill) until() time.Time { return k.at.Add(time.Duration(k.seconds) * time.Second) }

func newPairsWorld(t *testing.T, seed uint64, base string) *pairsWorld {
	w := &pairsWorld{
		T: t, rng: rand.New(rand.NewPCG(seed, 1)), draw: rand.New(rand.NewPCG(seed, 2)), base: base, host: &shutdowntest.Host{}, rt: lifecycletest.NewRuntime(), over: make(chan struct{}),
		boot: &boot{id: "boot-1", began: time.Now()}, disk: map[string][]byte{}, unsynced: map[string]pairsFile{}, table: &pairsTable{},
	}
	w.latency = time.Duration([]int{0, 2, 30, 300}[w.rng.IntN(4)]) * time.Millisecond
	w.diskTakes = time.Duration([]int{0, 1, 20}[w.rng.IntN(3)]) * time.Millisecond
	w.restart = time.Duration([]int{10, 1070, 4300}[w.rng.IntN(3)]) * time.Millisecond
	w.keeps = w.rng.IntN(4) > 0
	w.newPods = w.addPods
	return w
}

// addPods starts pods at random: early, late and stuck ones in each bucket, one that is listed
// late, and sometimes one that nothing ends.
func (w *pairsWorld) addPods() {
	hung := w.draw.IntN(6)
	for i, b := range pairsSchedule {
		w.addPod(i, "early", 30, 0, lifecycletest.Script{ExitAfterTerm: 300 * time.Millisecond, Exec: leaves})
		w.addPod(i, "late", 30, 0, lifecycletest.Script{ExitAfterTerm: time.Duration(b.seconds)*time.Second - 700*time.Millisecond})
		stuck := lifecycletest.Script{IgnoreTerm: true}
		if i == hung {
			stuck.HangStops = -1
		}
		w.addPod(i, "stuck", b.seconds-1, 0, stuck)
	}
	w.addPod(w.draw.IntN(3), "appears", 3, time.Duration([]int{2500, 7700, 29000}[w.draw.IntN(3)])*time.Millisecond, lifecycletest.Script{ExitAfterTerm: time.Second})
}

func (w *pairsWorld) addPod(bucket int, name string, grace int64, listed time.Duration, script lifecycletest.Script) {
	pod := shutdowntest.Pod(fmt.Sprintf("%s-%d-%s", name, bucket, w.boot.id), pairsSchedule[bucket].priority, grace)
	pod.Spec.Containers = []v1.Container{{Name: "main"}}
	if script.Exec != nil {
		pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"leave"}}}}
	}
	w.rt.Start(pod.Name, script)
	w.pods = append(w.pods, &pairsPod{pod: pod, boot: w.boot, bucket: bucket, hung: script.HangStops != 0, listed: time.Now().Add(listed)})
	go func() {
		<-w.rt.Exited(pod.Name)
		w.locked(func() {})
	}()
}

// say adds to the story, and violate to what is wrong. The mutex is held.
func (w *pairsWorld) say(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf("%v ", time.Since(w.table.origin).Round(time.Microsecond))+fmt.Sprintf(format, args...))
}

func (w *pairsWorld) violate(format string, args ...any) {
	w.say("WRONG: "+format, args...)
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

func (w *pairsWorld) locked(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seeEnds()
	do()
}

// agent returns the agent that runs; nil if none does.
func (w *pairsWorld) agent() *pairsAgent {
	if len(w.agents) == 0 || w.agents[len(w.agents)-1].isDead() {
		return nil
	}
	return w.agents[len(w.agents)-1]
}

// find returns a pod of the world. The mutex is held.
func (w *pairsWorld) find(pod *v1.Pod) *pairsPod {
	return w.pods[slices.IndexFunc(w.pods, func(p *pairsPod) bool { return p.pod.UID == pod.UID })]
}

// leaves is the command of a preStop hook.
func leaves(ctx context.Context, _ []string) ([]byte, error) {
	return nil, waitFor(ctx, 200*time.Millisecond)
}

func waitFor(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// seeEnds records the pods that have ended. The mutex is held.
func (w *pairsWorld) seeEnds() {
	for _, p := range w.pods {
		if _, exited := w.rt.ExitCode(p.pod.Name); exited && p.ended.IsZero() {
			p.ended = time.Now()
			w.say("%s has ended", p.pod.Name)
		}
	}
}

// lists returns the pods that are listed now. The mutex is held.
func (w *pairsWorld) lists() (pods []*v1.Pod) {
	for _, p := range w.pods {
		if p.ended.IsZero() && !time.Now().Before(p.listed) {
			pods = append(pods, p.pod)
		}
	}
	return pods
}

// wasBad reports whether the list was empty or failed at a time of a span. The mutex is held.
func (w *pairsWorld) wasBad(from, until time.Time) bool {
	return slices.ContainsFunc(w.badLists, func(s pairsSpan) bool { return !s.until.Before(from) && !s.from.After(until) })
}

// wasEmpty reports whether the list was empty at a time of a span. The mutex is held.
func (w *pairsWorld) wasEmpty(from, until time.Time) bool {
	return slices.ContainsFunc(w.badLists, func(s pairsSpan) bool { return s.empty && !s.until.Before(from) && !s.from.After(until) })
}

// powerOff ends the boot, with all that runs, and begins the next one. The mutex is held.
func (w *pairsWorld) powerOff() {
	w.say("the node reboots")
	for name, file := range w.unsynced { // in any order
		lost := w.loses == losesAll || w.loses == losesAny && w.draw.IntN(2) == 0
		if time.Now().Before(file.until) && lost {
			w.say("the new %s is lost", name)
			if w.disk[name] = file.former; file.former == nil {
				delete(w.disk, name)
			}
		}
	}
	clear(w.unsynced)
	for _, p := range w.pods {
		p.rebooted = cmp.Or(p.rebooted, time.Now())
		w.rt.Exit(p.pod.Name)
	}
	w.seeEnds()
	if w.kept != nil {
		_ = w.kept.Close()
		w.kept = nil
	}
	w.host.SetPending(nil)
	w.notice, w.pending = time.Time{}, time.Time{}
	w.boot = &boot{id: fmt.Sprint("boot-", len(w.boot.id)+len(w.pods)), began: time.Now()}
	w.newPods()
}

// setReady is a request that changes the readiness of a pod. The mutex is held.
func (p *pairsPod) setReady(ready bool) {
	p.pod = p.pod.DeepCopy()
	condition := v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue}
	if !ready {
		condition.Status, condition.Reason = v1.ConditionFalse, v1.PodReasonTerminationByKubelet
	}
	podcondition.Set(&p.pod.Status, condition, metav1.Now())
}

func (p *pairsPod) isReady() bool {
	ready := podcondition.Get(&p.pod.Status, v1.PodReady)
	return ready == nil || ready.Status == v1.ConditionTrue
}

// answer makes a request that the API server carries out after half of its latency, unless the
// agent is dead by then.
func (a *pairsAgent) answer(ctx context.Context, kind, of string, carryOut func()) error {
	a.enter("the API server")
	return a.spoil(ctx, kind, of, func() error {
		for i := range 2 {
			select {
			case <-time.After(a.latency / 2):
			case <-ctx.Done():
				return a.leave(context.Cause(ctx))
			}
			if err := a.leave(nil); err != nil {
				return err
			}
			if i == 0 {
				a.locked(carryOut)
			}
		}
		return nil
	})
}

// newDir makes the folder of the next agent, with the files whose writes are done. Each agent has
// its own, because a killed agent cannot unlock its folder: its goroutines are in this process.
func (w *pairsWorld) newDir() string {
	dir, err := os.MkdirTemp(w.base, "")
	require.NoError(w, err)
	for name, data := range w.disk {
		require.NoError(w, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	return dir
}
