//go:build linux && go1.25

package shutdown_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/atomicfile"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// agent is a process on a machine: a manager, a terminator and the code that they call. A
// killed agent makes no further call and has no open connection. Its goroutines cannot be
// ended, so they wait until the test is over.
type agent struct {
	*machine

	number     int  // of the agents of the machine, from 1
	healthy    bool // its calls have no faults
	m          *shutdown.Manager
	terminator *lifecycle.Terminator
	ctx        context.Context //nolint:containedctx // of the process, for functions that get none
	stop       context.CancelFunc
	life       context.Context //nolint:containedctx // ends when the process does
	die        context.CancelCauseFunc
	gone       <-chan struct{} // closed when the process has ended or was killed
	returned   chan struct{}   // closed when Run has returned
	err        error           // of Run, once it has returned

	// The following are guarded by the mutex of the machine.
	died     time.Time // when the agent was killed; zero: it was not
	sessions []shutdown.Session
	locks    []io.Closer // the host's locks that the agent holds
	execs    int         // runs of the preStop hook
	drains   int         // drains that have begun
}

// startAgent starts an agent. The calls of a healthy one have no faults.
func (m *machine) startAgent(healthy bool) {
	m.Helper()
	a := &agent{machine: m, number: len(m.agents) + 1, healthy: healthy, returned: make(chan struct{})}
	a.ctx, a.stop = context.WithCancel(klog.NewContext(m.Context(), klog.Logger{})) // which logs nothing
	a.life, a.die = context.WithCancelCause(m.Context())
	a.gone = a.life.Done()
	var err error
	a.terminator, err = lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: faultyRuntime{a}, Exits: m.rt, Commands: faultyRuntime{a}, Events: &m.events})
	require.NoError(m, err)
	a.m, err = shutdown.NewManagerWith(a.options(), m.boot.sinceBoot, a.writeFile)
	require.NoError(m, err)
	m.mu.Lock()
	m.agents = append(m.agents, a)
	m.mu.Unlock()
	go func() {
		defer close(a.returned)
		a.err = a.m.Run(a.ctx)
		if a.isGone() {
			return
		}
		if a.ctx.Err() == nil {
			a.addViolation("Run has returned by itself: %v", a.err)
		}
		left, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), time.Second)
		defer cancel()
		_ = a.terminator.Close(left) // terminations that hang end with the process
		if locks := a.endProcess(errEnded); len(locks) > 0 {
			a.addViolation("the agent has ended with %d locks", len(locks))
		}
		a.closeKeptLocks() // as systemd does when the unit has stopped
	}()
}

func (a *agent) options() shutdown.Options {
	opts := shutdown.Options{
		Config:    config(30*time.Second, 10*time.Second),
		Source:    faultySource{a},
		Killer:    faultyKiller{a, podkiller.New(a.terminator, podkiller.Options{Status: a.podStatus})},
		Reporter:  faultyReporter{a},
		Volumes:   volumes(a.unmount),
		Pods:      shutdown.PodsFunc(a.listPods),
		Policy:    a.policy,
		OnPlan:    a.onPlan,
		OnReport:  a.onReport,
		OnRelease: a.onRelease,
		StateDir:  a.dir,
	}
	if a.cell.step == atHold {
		opts.Hold = func(ctx context.Context) error { return a.callWithFault(ctx, atHold, "", succeed) }
	}
	return opts
}

func succeed(context.Context) error { return nil }

func (a *agent) isGone() bool { return a.life.Err() != nil }

// diedAt returns when the agent was killed; zero: it was not.
func (a *agent) diedAt() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.died
}

// stopAndWait ends the agent as an init system does and returns the error of Run.
func (a *agent) stopAndWait() error {
	stopped := time.Now()
	a.stop()
	select {
	case <-a.returned:
	case <-time.After(time.Minute):
		a.addViolation("Run has not returned %v after the end of its context", time.Since(stopped))
		return nil
	}
	if took := time.Since(stopped); took > 13*time.Second {
		a.addViolation("Run has returned %v after the end of its context", took)
	}
	return a.err
}

// endProcess ends the process: the agent makes no further call, and its connections are
// closed. It returns the locks that the agent held. A second call returns none: two calls of
// one agent may meet the fault that kills it at the same time.
func (a *agent) endProcess(cause error) []io.Closer {
	a.die(cause)
	a.mu.Lock()
	sessions, locks := a.sessions, a.locks
	a.sessions, a.locks = nil, nil
	a.mu.Unlock()
	for _, session := range sessions {
		_ = session.Close() // the host records errors itself
	}
	return locks
}

// kill ends the agent as kill -9 does. A copy of its lock stays in systemd's FD store.
func (a *agent) kill() {
	locks := a.endProcess(errKilled)
	a.mu.Lock()
	a.died = time.Now()
	a.keptLocks = append(a.keptLocks, locks...)
	a.mu.Unlock()
	if len(locks) > 0 {
		a.host.Script(func(h *shutdowntest.Host) { h.Kept = true })
	}
}

// callWithFault makes a call of the agent at a step, and applies the fault of the cell if it
// is one of that step. pod is the name of the pod that the call is about; "" if it is about
// none.
func (a *agent) callWithFault(ctx context.Context, s step, pod string, do func(context.Context) error) error {
	if err := a.applyFault(ctx, s, string(s)+pod, pod); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.life, func() { cancel(errKilled) })()
	err := do(ctx)
	return a.resultUnlessGone(err)
}

// resultUnlessGone returns err, the result of a call. The call of an agent that has ended or
// was killed does not return before the test is over.
func (a *agent) resultUnlessGone(err error) error {
	if a.isGone() {
		<-a.faultsOver
		return errKilled
	}
	return err
}

// applyFault applies the fault of the cell to a call at a step. seam tells the calls apart of
// which each has a first one: the function's name, with the pod's name if there is one.
func (a *agent) applyFault(ctx context.Context, s step, seam, pod string) error {
	if err := a.resultUnlessGone(nil); err != nil {
		return err
	}
	first, hit := a.meetsFault(s, seam, pod)
	if !hit {
		return nil
	}
	if first && (a.cell.fault == failsOnce || a.cell.fault == agentEnds || a.cell.fault == agentIsKilled) {
		<-time.After(faultLag)
	}
	switch a.cell.fault {
	case isSlow:
		return waitFor(ctx, slowness)
	case hangs:
		if first {
			<-a.faultsOver
		}
	case failsOnce:
		if first {
			return errFault
		}
	case failsAlways:
		return errFault
	case panics:
		panic("as the fault has it")
	case agentEnds:
		if first {
			a.stop()
		}
	case agentIsKilled:
		if first && a.number == a.cell.faultyAgent() {
			a.kill()
		}
	}
	return a.resultUnlessGone(nil)
}

// meetsFault reports whether a call has the fault, and whether it is the first call of its
// seam that has it.
func (a *agent) meetsFault(s step, seam, pod string) (first, hit bool) {
	select {
	case <-a.faultsOver:
		return false, false
	default:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.armed || a.healthy || s != a.cell.step || pod != "" && pod != "web" || a.number < a.cell.faultyAgent() {
		return false, false
	}
	a.faultCalls[seam]++
	return a.faultCalls[seam] == 1, true
}

// writeFile writes a state file. An agent that is killed here leaves half of a temporary file.
func (a *agent) writeFile(path string, encode func(io.Writer) error) error {
	var encoded bytes.Buffer
	if err := encode(&encoded); err != nil {
		return err
	}
	s, data := atStore, encoded.Bytes()
	if filepath.Base(path) == progressFile && hasEnded(data) {
		s = atReport
	}
	if a.cell == (cell{s, agentIsKilled}) && a.isArmed() && a.number == a.cell.faultyAgent() && !a.isGone() {
		torn := filepath.Join(a.dir, ".tmp-"+filepath.Base(path)+"123")
		if err := os.WriteFile(torn, data[:len(data)/2], 0o600); err != nil {
			return err
		}
	}
	if a.cell.fault == panics { // only code of the embedder panics
		s = ""
	}
	if err := a.applyFault(a.life, s, string(s)+filepath.Base(path), ""); err != nil {
		return err
	}
	return a.resultUnlessGone(atomicfile.Write(path, data))
}

// hasEnded reports whether the shutdown in a state file has ended.
func hasEnded(data []byte) bool {
	var stored struct{ Report shutdown.Report }
	return json.Unmarshal(data, &stored) == nil && !stored.Report.Ended.IsZero()
}
