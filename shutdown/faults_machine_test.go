//go:build linux && go1.25

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

// machine is a node with three pods. It outlives its agents and consists of the host, the
// runtime, the disk and what the API server has acknowledged.
type machine struct {
	*testing.T

	cell       cell
	dir        string
	host       *shutdowntest.Host
	rt         *lifecycletest.Runtime
	boot       *boot
	pods       []*v1.Pod
	events     lifecycletest.Events // about pods
	hostEnd    time.Time            // H, once the shutdown is announced; zero in the next boot
	faultsOver chan struct{}        // closed at the end of the test: calls that hang, and those of killed agents, return

	mu           sync.Mutex // guards all below
	armed        bool       // calls have the fault from now on
	faultCalls   map[string]int
	agents       []*agent
	signalled    []string // names of pods, in the order of the first calls of KillPod
	acknowledged map[string]time.Time
	keptLocks    []io.Closer // copies in systemd's FD store of the locks of killed agents
	violations   []string
}

// newMachine returns a machine; it must be called in a bubble. A fault that concerns one pod
// concerns the pod web.
func newMachine(t *testing.T, dir string, c cell) *machine {
	t.Helper()
	m := &machine{
		T: t, cell: c, dir: dir, host: &shutdowntest.Host{}, rt: lifecycletest.NewRuntime(),
		boot: &boot{id: "one", began: time.Now()}, faultsOver: make(chan struct{}),
		faultCalls: map[string]int{}, acknowledged: map[string]time.Time{},
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
	// These faults happen before a shutdown is announced, so they apply from the start.
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

// isRunning reports whether the container of a pod runs.
func (m *machine) isRunning(pod string) bool {
	_, exited := m.rt.ExitCode(pod)
	return !exited
}

// runningPods returns the pods whose container runs. It is the agents' Options.Pods.
func (m *machine) runningPods() []*v1.Pod {
	return slices.DeleteFunc(slices.Clone(m.pods), func(pod *v1.Pod) bool { return !m.isRunning(pod.Name) })
}

// podStatus returns the status of a pod with the state of its container in the runtime.
func (m *machine) podStatus(_ context.Context, pod *v1.Pod) *v1.PodStatus {
	status := v1.ContainerStatus{Name: pod.Name, ContainerID: "cri://" + pod.Name, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}
	if code, exited := m.rt.ExitCode(pod.Name); exited {
		status.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code}}
	}
	return &v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{status}}
}

// addViolation records that something is wrong; the next checkInvariants fails with it.
func (m *machine) addViolation(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.violations = append(m.violations, fmt.Sprintf(format, args...))
}

// arm makes calls have the fault from now on.
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

// powerOff ends all containers, as the end of a boot does, and begins the next boot.
func (m *machine) powerOff() {
	for _, pod := range m.pods {
		m.rt.Exit(pod.Name)
	}
	m.host.SetPending(nil)
	m.hostEnd = time.Time{}
	m.boot = &boot{id: "two", began: time.Now()}
	// A write that hangs keeps the folder locked in this process, which a reboot ends.
	require.NoError(m, os.RemoveAll(filepath.Join(m.dir, ".graceful_node_shutdown_lock")))
}

// shutDown runs one shutdown with the fault of the cell, checks it, and returns the cell's
// text in the table.
func (m *machine) shutDown() string {
	defer m.endAll()
	m.startAgent(false)
	m.advance(idleTime)
	m.arm()
	held, announced := m.host.Held() > 0, time.Now()
	m.hostEnd = announced.Add(m.hostLimit())
	m.host.Announce(shutdown.Event{Kind: shutdown.KindPoweroff, Origin: "host"})
	if m.cell.step == atResume {
		m.advance(time.Second)
		m.agents[0].kill()
	}
	m.advance(time.Until(announced.Add(4 * time.Second)))
	signalled := false
	if a := m.currentAgent(); a != nil && a.drainsBegun() == 0 {
		require.NoError(m, a.m.Trigger(shutdown.Event{Origin: "SIGTERM"}))
		signalled = true
	}
	m.advance(time.Until(announced.Add(m.hostLimit() + 2*releaseLag)))
	hostWentOn := m.closeKeptLocks() // the limit of the host is over
	m.advance(5 * time.Second)
	o := m.outcome(held, signalled, announced)
	o.hostWentOn = hostWentOn
	if a := m.currentAgent(); a != nil {
		o.err = a.stopAndWait()
	}
	m.checkGoroutines()
	m.checkInvariants()
	m.checkOutcome(o)
	m.afterReboot(o)
	return o.String()
}

// hostLimit returns how long after the announcement the host has to be released at the
// latest.
func (m *machine) hostLimit() time.Duration {
	if m.cell.step == atHold {
		return hostTime + holdTime
	}
	return hostTime
}

// closeKeptLocks closes the copies of locks in systemd's FD store and reports whether there
// were any.
func (m *machine) closeKeptLocks() bool {
	m.mu.Lock()
	kept := m.keptLocks
	m.keptLocks = nil
	m.mu.Unlock()
	for _, lock := range kept {
		_ = lock.Close() // the host records errors itself
	}
	return len(kept) > 0
}

// advance advances the time in small steps and checks the invariants after each. A killed
// agent is followed by another one a second later, as systemd restarts it.
func (m *machine) advance(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
		<-time.After(checkInterval)
		synctest.Wait()
		m.checkInvariants()
		last := m.agents[len(m.agents)-1]
		if at := last.diedAt(); !at.IsZero() && time.Since(at) >= time.Second {
			// The killed agent cannot close its lock file, because its goroutines are in this
			// process. The next agent creates the file anew, so that the folder is free.
			require.NoError(m, os.Remove(filepath.Join(m.dir, ".graceful_node_shutdown_lock")))
			m.startAgent(false)
			synctest.Wait()
		}
	}
}

// currentAgent returns the agent that runs; nil if none does.
func (m *machine) currentAgent() *agent {
	last := m.agents[len(m.agents)-1]
	select {
	case <-last.gone:
		return nil
	default:
		return last
	}
}

// endAll ends all goroutines that are left, so that the bubble can end.
func (m *machine) endAll() {
	close(m.faultsOver)
	for _, a := range m.agents {
		a.stop()
	}
	for _, a := range m.agents {
		<-a.returned
		a.endProcess(errEnded)
		require.NoError(m, a.terminator.Close(m.Context()))
	}
	synctest.Wait()
}

var (
	errFault  = errors.New("as the fault has it")
	errKilled = errors.New("the agent was killed")
)
