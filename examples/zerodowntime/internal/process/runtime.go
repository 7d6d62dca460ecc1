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

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

var (
	_ lifecycle.Runtime     = (*Runtime)(nil)
	_ lifecycle.ExitWatcher = (*Runtime)(nil)
)

// Runtime starts and stops processes, each under an ID. Make one with [New].
type Runtime struct {
	onSignal func(id string, signal os.Signal)

	mu        sync.Mutex
	processes map[string]*process // by ID, including those that have ended
}

type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd.ProcessState is set
}

// New makes a runtime without processes. onSignal is called before each signal is sent; it
// may be nil.
func New(onSignal func(id string, signal os.Signal)) *Runtime {
	if onSignal == nil {
		onSignal = func(string, os.Signal) {}
	}
	return &Runtime{onSignal: onSignal, processes: map[string]*process{}}
}

// Start starts a process and waits for the first line of its standard output, which it
// returns. The standard error of the process goes to stderr. If ctx ends before the line has
// come, the process is killed.
func (r *Runtime) Start(ctx context.Context, id string, command []string, stderr io.Writer) (string, error) {
	// The process outlives ctx: StopContainer and Close end it.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), command[0], command[1:]...)
	cmd.Stderr = stderr
	cmd.WaitDelay = time.Second // a child of the process may keep its output open
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", fmt.Errorf("failed to start %s: %w", id, err)
	}
	in, err := cmd.StdinPipe() // Wait closes it
	if err != nil {
		return "", fmt.Errorf("failed to start %s: %w", id, err)
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("failed to start %s: %w", id, errors.Join(err, in.Close()))
	}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	first := make(chan string, 1)
	go func() {
		defer close(p.exited)
		lines := bufio.NewReader(out)
		line, _ := lines.ReadString('\n') // an error leaves the line empty, which is checked below
		first <- strings.TrimSpace(line)
		_, _ = io.Copy(io.Discard, lines)
		_ = cmd.Wait() // State reads ProcessState
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
		return "", errors.Join(context.Cause(ctx), ignoreDone(err))
	}
}

// Running returns the one container of a pod, the process whose ID is the pod's name, if it has not
// ended.
func (r *Runtime) Running(_ context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	if r.find(pod.Name) == nil || r.State(pod.Name) != "" {
		return nil, nil
	}
	return []lifecycle.Container{{Name: pod.Spec.Containers[0].Name, ID: pod.Name}}, nil
}

// StopContainer sends SIGTERM, and SIGKILL when the timeout is over. With a timeout of 0 it
// sends SIGKILL only. It returns when the process has ended.
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

// Exited returns a channel that is closed when the process has ended, or if the ID is unknown.
func (r *Runtime) Exited(id string) <-chan struct{} {
	if p := r.find(id); p != nil {
		return p.exited
	}
	unknown := make(chan struct{})
	close(unknown)
	return unknown
}

// State returns how a process has ended, as "exit status 0" or "signal: killed". It is ""
// while the process runs, and for an unknown ID.
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

// Close kills the processes that still run, and returns when all have ended.
func (r *Runtime) Close() error {
	r.mu.Lock()
	processes := slices.Collect(maps.Values(r.processes))
	r.mu.Unlock()
	var err error
	for _, p := range processes {
		err = errors.Join(err, ignoreDone(p.cmd.Process.Kill()))
	}
	for _, p := range processes {
		<-p.exited
	}
	return err
}

func (r *Runtime) find(id string) *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.processes[id]
}

// signal sends a signal to a process that has not ended.
func (r *Runtime) signal(id string, p *process, signal os.Signal) error {
	select {
	case <-p.exited:
		return nil
	default:
	}
	r.onSignal(id, signal)
	if err := ignoreDone(p.cmd.Process.Signal(signal)); err != nil {
		return fmt.Errorf("failed to send %s to %s: %w", signal, id, err)
	}
	return nil
}

// ignoreDone returns nil for the error that a process has ended already, else err.
func ignoreDone(err error) error {
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
