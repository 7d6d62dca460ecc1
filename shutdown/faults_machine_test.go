//go:build linux

package shutdown_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// machine is a node with three pods, which outlives its agents: its host, its runtime, its
// disk, and what the API server was told.
type machine struct {
	*testing.T

	cell   cell
	dir    string
	host   *shutdowntest.Host
	rt     *lifecycletest.Runtime
	boot   *boot
	pods   []*v1.Pod
	events lifecycletest.Events // about pods
	end    time.Time            // H, once the shutdown is announced; zero in the next boot
	over   chan struct{}        // closed: nothing hangs any more, and what was killed may return

	mu        sync.Mutex // guards all below
	armed     bool       // the fault happens from now on
	met       map[string]int
	agents    []*agent
	signalled []string // pods, by the first call of the killer
	told      map[string]time.Time
	kept      []io.Closer // locks of agents that were killed, of which systemd has a copy
	wrong     []string
}

// newMachine is a machine in a bubble. The fault hits web where it hits one pod.
func newMachine(t *testing.T, dir string, c cell) *machine {
	t.Helper()
	m := &machine{
		T: t, cell: c, dir: dir, host: &shutdowntest.Host{}, rt: lifecycletest.NewRuntime(),
		boot: &boot{id: "one", began: time.Now()}, over: make(chan struct{}),
		met: map[string]int{}, told: map[string]time.Time{},
		pods: list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("db", 0, 60), shutdowntest.Pod("etcd", topPriority, 60)),
	}
	for name, takes := range map[string]time.Duration{"web": 3 * time.Second, "db": 4 * time.Second, "etcd": 2 * time.Second} {
		m.rt.Start(name, lifecycletest.Script{ExitAfterTerm: takes, Exec: func(ctx context.Context, _ []string) ([]byte, error) {
			return nil, waitFor(ctx, 2*time.Second)
		}})
	}
	for _, pod := range m.pods {
		pod.Spec.Containers = []v1.Container{{Name: pod.Name}}
	}
	m.pods[0].Spec.Containers[0].Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"leave"}}}}
	// What goes wrong before a shutdown, and while nothing is announced, is there from the start.
	m.armed = slices.Contains([]step{atConnect, atDelay, atInhibit}, c.step) || c == cell{atEvent, panics}
	return m
}

func waitFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// runs tells whether the container of a pod runs.
func (m *machine) runs(pod string) bool {
	_, exited := m.rt.ExitCode(pod)
	return !exited
}

// running is Options.Pods, as an agent gives it that knows its runtime.
func (m *machine) running() []*v1.Pod {
	return slices.DeleteFunc(slices.Clone(m.pods), func(pod *v1.Pod) bool { return !m.runs(pod.Name) })
}

// status is the status of a pod by its runtime.
func (m *machine) status(_ context.Context, pod *v1.Pod) *v1.PodStatus {
	status := v1.ContainerStatus{Name: pod.Name, ContainerID: "cri://" + pod.Name, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}
	if code, exited := m.rt.ExitCode(pod.Name); exited {
		status.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code}}
	}
	return &v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{status}}
}

// blame notes what is wrong.
func (m *machine) blame(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
}

// arm lets the fault happen from now on.
func (m *machine) arm() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.armed = true
}

func (m *machine) isArmed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.armed
}

// switchOff ends all containers, as the end of a boot does.
func (m *machine) switchOff() {
	for _, pod := range m.pods {
		m.rt.Exit(pod.Name)
	}
	m.host.SetPending(nil)
	m.end = time.Time{}
	m.boot = &boot{id: "two", began: time.Now()}
}

// shutDown goes through one shutdown with a fault in it, and says how it ended.
func (m *machine) shutDown() string {
	defer m.clear()
	m.start(false)
	m.pass(beforehand)
	m.arm()
	held, announced := m.host.Held() > 0, time.Now()
	m.end = announced.Add(m.limit())
	m.host.Announce(shutdown.Event{Kind: shutdown.KindPoweroff, Origin: "host"})
	if m.cell.step == atResume {
		m.pass(time.Second)
		m.agents[0].kill()
	}
	m.pass(time.Until(announced.Add(4 * time.Second)))
	signalled := false
	if a := m.current(); a != nil && a.drained() == 0 {
		require.NoError(m, a.m.Trigger(shutdown.Event{Origin: "SIGTERM"}))
		signalled = true
	}
	m.pass(time.Until(announced.Add(m.limit() + 2*releaseLag)))
	byItself := m.dropKept() // the host goes on
	m.pass(5 * time.Second)
	o := m.outcome(held, signalled, announced)
	o.byItself = byItself
	if a := m.current(); a != nil {
		o.err = a.finish()
	}
	m.leavesNothing()
	m.look()
	m.check(o)
	m.afterReboot(o)
	return o.String()
}

// limit is H.
func (m *machine) limit() time.Duration {
	if m.cell.step == atHold {
		return hostTime + holdTime
	}
	return hostTime
}

// dropKept closes the copies of locks that systemd has kept, and tells whether there were any.
func (m *machine) dropKept() bool {
	m.mu.Lock()
	kept := m.kept
	m.kept = nil
	m.mu.Unlock()
	for _, lock := range kept {
		_ = lock.Close() // the host notes what is wrong
	}
	return len(kept) > 0
}

// pass lets time go by in small steps, and looks at each whether all is as it has to be. An
// agent that was killed is started again a second later, as systemd does.
func (m *machine) pass(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
		<-time.After(lookEvery)
		synctest.Wait()
		m.look()
		last := m.agents[len(m.agents)-1]
		if at := last.diedAt(); !at.IsZero() && time.Since(at) >= time.Second {
			// The state folder is free: the lock of the one before is on another file from now on,
			// because it is open in this process.
			require.NoError(m, os.Remove(filepath.Join(m.dir, ".graceful_node_shutdown_lock")))
			m.start(false)
			synctest.Wait()
		}
	}
}

// current is the agent that runs; nil: none does.
func (m *machine) current() *agent {
	last := m.agents[len(m.agents)-1]
	select {
	case <-last.gone:
		return nil
	default:
		return last
	}
}

// clear ends all that is left, so that the bubble can end.
func (m *machine) clear() {
	close(m.over)
	for _, a := range m.agents {
		a.stop()
	}
	for _, a := range m.agents {
		<-a.returned
		a.end(errEnded)
		require.NoError(m, a.terminator.Close(m.Context()))
	}
	synctest.Wait()
}

var (
	errFault  = errors.New("as the fault has it")
	errKilled = errors.New("the agent was killed")
)
