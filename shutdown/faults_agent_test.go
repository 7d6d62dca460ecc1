//go:build linux

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

// agent is a process on a machine: a manager, a terminator and what they call. One that was
// killed makes no call any more, and its connections are closed; its goroutines wait until
// the test is over.
type agent struct {
	*machine

	number     int  // from 1
	healthy    bool // it meets no fault
	m          *shutdown.Manager
	terminator *lifecycle.Terminator
	ctx        context.Context //nolint:containedctx // of the process, for functions that get none
	stop       context.CancelFunc
	life       context.Context //nolint:containedctx // ends when the process does
	die        context.CancelCauseFunc
	gone       <-chan struct{} // closed when the process has ended or was killed
	returned   chan struct{}   // closed when Run has returned
	err        error           // Run's, after that

	// The following are guarded by the mutex of the machine.
	died     time.Time // when it was killed; zero: it was not
	sessions []shutdown.Session
	locks    []io.Closer // that it holds
	execs    int         // runs of the hook
	drains   int         // that it has begun
}

// start starts an agent. A healthy one meets no fault.
func (m *machine) start(healthy bool) {
	m.Helper()
	a := &agent{machine: m, number: len(m.agents) + 1, healthy: healthy, returned: make(chan struct{})}
	a.ctx, a.stop = context.WithCancel(klog.NewContext(m.Context(), klog.Logger{})) // which logs nothing
	a.life, a.die = context.WithCancelCause(m.Context())
	a.gone = a.life.Done()
	var err error
	a.terminator, err = lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: faultyRuntime{a}, Exits: m.rt, Commands: faultyRuntime{a}, Events: &m.events})
	require.NoError(m, err)
	a.m, err = shutdown.NewManagerOn(a.options(), m.boot.now)
	require.NoError(m, err)
	a.m.StoreWith(a.write)
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
			a.blame("Run has returned by itself: %v", a.err)
		}
		left, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), time.Second)
		defer cancel()
		_ = a.terminator.Close(left) // what does not hear it ends with the process
		if locks := a.end(errEnded); len(locks) > 0 {
			a.blame("the agent has ended with %d locks", len(locks))
		}
		a.dropKept() // as systemd does when the unit has stopped
	}()
}

func (a *agent) options() shutdown.Options {
	opts := shutdown.Options{
		Config:    config(30*time.Second, 10*time.Second),
		Source:    faultySource{a},
		Killer:    faultyKiller{a, podkiller.New(a.terminator, podkiller.Options{Status: a.status})},
		Reporter:  faultyReporter{a},
		Volumes:   volumes(a.unmount),
		Pods:      a.list,
		Policy:    a.policy,
		OnPlan:    a.onPlan,
		OnReport:  a.onReport,
		OnRelease: a.onRelease,
		StateDir:  a.dir,
	}
	if a.cell.step == atHold {
		opts.Hold = func(ctx context.Context) error { return a.call(ctx, atHold, "", nothing) }
	}
	return opts
}

func nothing(context.Context) error { return nil }

func (a *agent) isGone() bool { return a.life.Err() != nil }

// diedAt is when the agent was killed; zero: it was not.
func (a *agent) diedAt() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.died
}

// finish ends the agent as its init system does, and gives what Run has said.
func (a *agent) finish() error {
	stopped := time.Now()
	a.stop()
	select {
	case <-a.returned:
	case <-time.After(time.Minute):
		a.blame("Run has not returned %v after the end of its context", time.Since(stopped))
		return nil
	}
	if took := time.Since(stopped); took > 13*time.Second {
		a.blame("Run has returned %v after the end of its context", took)
	}
	return a.err
}

// end is the end of the process: it makes no call any more, and its connections are closed. It
// gives the locks that it had, once: two calls of a process may meet the fault that kills it at
// the same time.
func (a *agent) end(cause error) []io.Closer {
	a.die(cause)
	a.mu.Lock()
	sessions, locks := a.sessions, a.locks
	a.sessions, a.locks = nil, nil
	a.mu.Unlock()
	for _, session := range sessions {
		_ = session.Close() // the host notes what is wrong
	}
	return locks
}

// kill ends the agent as kill -9 does. A copy of its lock stays with systemd.
func (a *agent) kill() {
	locks := a.end(errKilled)
	a.mu.Lock()
	a.died = time.Now()
	a.kept = append(a.kept, locks...)
	a.mu.Unlock()
	if len(locks) > 0 {
		a.host.Script(func(h *shutdowntest.Host) { h.Kept = true })
	}
}

// call makes a call of the agent, in which the fault of the cell may be. pod is whom it is
// about; "": nobody.
func (a *agent) call(ctx context.Context, s step, pod string, do func(context.Context) error) error {
	if err := a.suffer(ctx, s, string(s)+pod, pod); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.life, func() { cancel(errKilled) })()
	err := do(ctx)
	return a.unlessGone(err)
}

// unlessGone gives the result of a call. One of an agent that is gone does not return.
func (a *agent) unlessGone(err error) error {
	if a.isGone() {
		<-a.over
		return errKilled
	}
	return err
}

// suffer is the fault of a step, in the n-th call of a seam.
func (a *agent) suffer(ctx context.Context, s step, seam, pod string) error {
	if err := a.unlessGone(nil); err != nil {
		return err
	}
	first, hit := a.meets(s, seam, pod)
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
			<-a.over
		}
	case failsOnce:
		if first {
			return errFault
		}
	case failsForEver:
		return errFault
	case panics:
		panic("as the fault has it")
	case agentEnds:
		if first {
			a.stop()
		}
	case agentIsKilled:
		if first && a.number == a.cell.victim() {
			a.kill()
		}
	}
	return a.unlessGone(nil)
}

// meets tells whether a call meets the fault, and whether it is the first that does.
func (a *agent) meets(s step, seam, pod string) (first, hit bool) {
	select {
	case <-a.over:
		return false, false
	default:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.armed || a.healthy || s != a.cell.step || pod != "" && pod != "web" || a.number < a.cell.victim() {
		return false, false
	}
	a.met[seam]++
	return a.met[seam] == 1, true
}

// write writes a state file. An agent that is killed in it leaves a torn temporary file.
func (a *agent) write(path string, encode func(io.Writer) error) error {
	var encoded bytes.Buffer
	if err := encode(&encoded); err != nil {
		return err
	}
	s, data := atStore, encoded.Bytes()
	if filepath.Base(path) == progressFile && hasEnded(data) {
		s = atReport
	}
	if a.cell == (cell{s, agentIsKilled}) && a.isArmed() && a.number == a.cell.victim() && !a.isGone() {
		torn := filepath.Join(a.dir, ".tmp-"+filepath.Base(path)+"123")
		if err := os.WriteFile(torn, data[:len(data)/2], 0o600); err != nil {
			return err
		}
	}
	if a.cell.fault == panics { // which is for the embedder's code
		s = ""
	}
	if err := a.suffer(a.life, s, string(s)+filepath.Base(path), ""); err != nil {
		return err
	}
	return a.unlessGone(atomicfile.Write(path, data))
}

// hasEnded tells whether the shutdown of a state file has ended.
func hasEnded(data []byte) bool {
	var stored struct{ Report shutdown.Report }
	return json.Unmarshal(data, &stored) == nil && !stored.Report.Ended.IsZero()
}
