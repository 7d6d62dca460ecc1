// Package process runs processes as the containers of a [lifecycle.Terminator]: a stop is
// a SIGTERM, and a SIGKILL when its time is over.
//
// # Concurrency properties
//
// All methods may be called concurrently.
//
// # Failure modes
//
// Each process has a pipe as its standard input, which ends when this program does,
// however that comes about: a process that ends with it is never left over.
package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kubegrace/kubegrace/lifecycle"
)

var (
	_ lifecycle.Runtime     = (*Runtime)(nil)
	_ lifecycle.ExitWatcher = (*Runtime)(nil)
)

// Runtime keeps processes by the IDs that they were started with. Make one with [New].
type Runtime struct {
	onSignal func(id string, signal os.Signal)

	mu        sync.Mutex
	processes map[string]*running
}

// running is a process, or what is left of it.
type running struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended and was waited for
}

// New makes a runtime without processes. onSignal is told of each signal before it is
// sent; nil: nobody is.
func New(onSignal func(id string, signal os.Signal)) *Runtime {
	if onSignal == nil {
		onSignal = func(string, os.Signal) {}
	}
	return &Runtime{onSignal: onSignal, processes: map[string]*running{}}
}

// Start starts a process and waits for the first line that it prints, which it returns
// without its end. What it prints as errors goes to errs. If ctx ends before that line
// comes, the process is killed.
func (r *Runtime) Start(ctx context.Context, id string, command []string, errs io.Writer) (string, error) {
	// The process outlives ctx: it ends by StopContainer or Close.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), command[0], command[1:]...)
	cmd.Stderr = errs
	cmd.WaitDelay = time.Second // a child of its own may hold its output open
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", fmt.Errorf("failed to start %s: %w", id, err)
	}
	in, err := cmd.StdinPipe() // closed when the process has been waited for
	if err != nil {
		return "", fmt.Errorf("failed to start %s: %w", id, err)
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("failed to start %s: %w", id, errors.Join(err, in.Close()))
	}
	p := &running{cmd: cmd, exited: make(chan struct{})}
	first := make(chan string, 1)
	go func() {
		defer close(p.exited)
		lines := bufio.NewReader(out)
		line, _ := lines.ReadString('\n') // no line: it has ended, which is seen below
		first <- strings.TrimSpace(line)
		_, _ = io.Copy(io.Discard, lines)
		_ = cmd.Wait() // how it ended is in ProcessState
	}()
	r.mu.Lock()
	r.processes[id] = p
	r.mu.Unlock()
	select {
	case line := <-first:
		if line == "" {
			<-p.exited
			return "", fmt.Errorf("%s has ended before it was ready: %s", id, cmd.ProcessState)
		}
		return line, nil
	case <-ctx.Done():
		err := cmd.Process.Kill()
		<-p.exited
		return "", errors.Join(context.Cause(ctx), notDone(err))
	}
}

// StopContainer sends SIGTERM, and SIGKILL after the timeout; SIGKILL at once if that is 0.
func (r *Runtime) StopContainer(ctx context.Context, id string, timeoutSeconds int64) error {
	p := r.find(id)
	if p == nil {
		return fmt.Errorf("%s: %w", id, lifecycle.ErrContainerNotFound)
	}
	if timeoutSeconds > 0 {
		if err := r.signal(id, p, syscall.SIGTERM); err != nil {
			return err
		}
		timeout := time.NewTimer(time.Duration(timeoutSeconds) * time.Second)
		defer timeout.Stop()
		select {
		case <-p.exited:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timeout.C:
		}
	}
	if err := r.signal(id, p, syscall.SIGKILL); err != nil {
		return err
	}
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Exited is closed once the process has ended; at once for one that is not known.
func (r *Runtime) Exited(id string) <-chan struct{} {
	if p := r.find(id); p != nil {
		return p.exited
	}
	unknown := make(chan struct{})
	close(unknown)
	return unknown
}

// State says how a process has ended, as "exit status 0" or "signal: killed"; "" while it
// runs, and for one that is not known.
func (r *Runtime) State(id string) string {
	p := r.find(id)
	if p == nil {
		return ""
	}
	select {
	case <-p.exited:
		return p.cmd.ProcessState.String()
	default:
		return ""
	}
}

// Close kills what still runs, and returns when nothing does.
func (r *Runtime) Close() error {
	r.mu.Lock()
	all := slices.Collect(maps.Values(r.processes))
	r.mu.Unlock()
	var err error
	for _, p := range all {
		err = errors.Join(err, notDone(p.cmd.Process.Kill()))
	}
	for _, p := range all {
		<-p.exited
	}
	return err
}

func (r *Runtime) find(id string) *running {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.processes[id]
}

// signal sends a signal to a process. One that has ended needs none.
func (r *Runtime) signal(id string, p *running, signal os.Signal) error {
	select {
	case <-p.exited:
		return nil
	default:
	}
	r.onSignal(id, signal)
	if err := notDone(p.cmd.Process.Signal(signal)); err != nil {
		return fmt.Errorf("failed to send %s to %s: %w", signal, id, err)
	}
	return nil
}

// notDone is the error of a signal, but for that of a process which has ended.
func notDone(err error) error {
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
