//go:build linux

package logind_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// soakAgent is an agent with pods, a state folder and a terminator.
type soakAgent struct {
	t      *testing.T
	source source.Source
	dir    string

	manager    *shutdown.Manager
	terminator *lifecycle.Terminator
	end        func() // may be called again

	mu       sync.Mutex                        // guards all below
	runtimes map[string]*lifecycletest.Runtime // the runtime of each container of this round and the previous one, by ID
	pods     []*v1.Pod
	made     int      // how many pods were made so far, for their names
	killing  int      // how many calls of KillPod are in progress
	wrong    []string // pods that were said to have ended, and ran
}

// startSoakAgent starts an agent that ends with the test.
func startSoakAgent(t *testing.T, source source.Source, dir string) *soakAgent {
	t.Helper()
	a := &soakAgent{t: t, source: source, dir: dir}
	a.start()
	t.Cleanup(func() { a.end() })
	return a
}

// start makes a new terminator and manager with the same source and state folder, as a new process of the
// agent would.
func (a *soakAgent) start() {
	var err error
	a.terminator, err = lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: a, Exits: a})
	require.NoError(a.t, err)
	killer := podkiller.New(a.terminator, podkiller.Options{})
	a.manager, err = shutdown.NewManager(shutdown.Options{
		Config: buckets, Source: a.source, StateDir: a.dir,
		ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { a.mu.Lock(); defer a.mu.Unlock(); return a.pods }, nil),
		Killer: shutdown.PodKillerFunc(func(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
			return a.checkedKill(ctx, killer, pod, req)
		}),
	})
	require.NoError(a.t, err)
	ctx, stop := context.WithCancel(klog.NewContext(a.t.Context(), klog.Logger{}))
	manager, terminator, ended := a.manager, a.terminator, make(chan error, 1)
	go func() { ended <- manager.Run(ctx) }()
	a.end = sync.OnceFunc(func() {
		stop()
		runErr := <-ended
		if errors.Is(runErr, shutdown.ErrInterrupted) { // the next agent continues
			runErr = nil
		}
		if err := errors.Join(runErr, terminator.Close(context.WithoutCancel(ctx))); err != nil {
			a.t.Error(err)
		}
	})
}

// restart ends the agent and starts it again, with the same pods and folder.
func (a *soakAgent) restart() {
	a.end()
	a.start()
}

// replacePods replaces the pods by n new ones, whose containers take some time to end.
func (a *soakAgent) replacePods(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	rt, runtimes := lifecycletest.NewRuntime(), map[string]*lifecycletest.Runtime{}
	for _, pod := range a.pods { // a signal that comes late may still kill these pods
		runtimes[string(pod.UID)] = a.runtimes[string(pod.UID)]
		a.terminator.Forget(pod)
	}
	a.runtimes, a.pods = runtimes, nil
	for i := range n {
		a.made++
		pod := shutdowntest.Pod(fmt.Sprint("pod-", a.made), []int32{0, 1000}[i%2], 30)
		pod.Spec.Containers = []v1.Container{{Name: "app"}}
		a.pods = append(a.pods, pod)
		a.runtimes[string(pod.UID)] = rt
		// Of every other container the first stop fails.
		rt.Start(pod, "app", string(pod.UID), lifecycletest.Script{ExitAfterTerm: rand.N(400 * time.Millisecond), FailStops: i % 2})
	}
}

// runtime returns the fake runtime of the container with this ID.
func (a *soakAgent) runtime(id string) *lifecycletest.Runtime {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.runtimes[id]
}

// Running, StopContainer and Exited call the runtime that the container runs in.
func (a *soakAgent) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	return a.runtime(string(pod.UID)).Running(ctx, pod)
}

func (a *soakAgent) StopContainer(ctx context.Context, id string, seconds int64) error {
	return a.runtime(id).StopContainer(ctx, id, seconds)
}

func (a *soakAgent) Exited(id string) <-chan struct{} { return a.runtime(id).Exited(id) }

// checkedKill kills a pod and records a violation if the pod runs after the kill has succeeded.
func (a *soakAgent) checkedKill(ctx context.Context, killer shutdown.PodKiller, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	a.mu.Lock()
	a.killing++
	rt := a.runtimes[string(pod.UID)]
	a.mu.Unlock()
	result, err := killer.KillPod(ctx, pod, req)
	_, exited := rt.ExitCode(string(pod.UID))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.killing--
	if err == nil && !exited {
		a.wrong = append(a.wrong, fmt.Sprintf("pod %s is said to have ended (%s), and runs", pod.Name, result.Outcome))
	}
	return result, err
}

// unfinishedWork says why the agent is not idle: a kill is in progress, it refuses pods, or it does not
// hold the lock. "": it is idle.
func (a *soakAgent) unfinishedWork() string {
	inhibitor := a.manager.Inhibitor()
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.killing > 0:
		return fmt.Sprint(a.killing, " kills")
	case a.manager.ShutdownStatus() != nil:
		return "it refuses pods"
	case !inhibitor.Held || inhibitor.Err != nil:
		return fmt.Sprintf("it does not hold the lock: %+v", inhibitor)
	}
	return ""
}

// checkAll checks that there are no violations, and checks the last report.
func (a *soakAgent) checkAll(t *testing.T) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	require.Empty(t, a.wrong)
	report, _ := a.manager.LastReport()
	for _, pod := range report.Pods {
		rt := a.runtimes[string(pod.UID)]
		if rt == nil || pod.Ended.IsZero() { // a pod of an earlier round, or one that the report does not call ended
			continue
		}
		if _, exited := rt.ExitCode(string(pod.UID)); !exited {
			require.Fail(t, "ended by the report, and running", "%+v", pod)
		}
	}
}
