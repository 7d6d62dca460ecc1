//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// errNoCommand is returned for a container without a command: there is no image that could have a default command.
var errNoCommand = errors.New("a process needs a command")

// processes runs each container as a process in its own process group.
type processes struct {
	byID sync.Map // from container ID to *process
}

// process is a container: a process, and what the lists need to know about it.
type process struct {
	*exec.Cmd

	container lifecycle.Container
	pod       types.UID
	exited    chan struct{} // closed when ProcessState is set
}

// StartContainer starts the container's command in a process group of its own and returns an ID that no other
// container has. A goroutine waits for the exit of the process, so that its exit code is known.
func (ps *processes) StartContainer(_ context.Context, pod *v1.Pod, c *v1.Container) (string, error) {
	if len(c.Command) == 0 {
		return "", errNoCommand
	}
	p := &process{Cmd: exec.Command(c.Command[0], slices.Concat(c.Command[1:], c.Args)...), pod: pod.UID, exited: make(chan struct{})}
	p.Dir, p.SysProcAttr = c.WorkingDir, &syscall.SysProcAttr{Setpgid: true}
	if err := p.Start(); err != nil {
		return "", err
	}
	go func() {
		defer close(p.exited)
		_ = p.Wait() // sets ProcessState
	}()
	id := fmt.Sprintf("%s/%s/%d", pod.UID, c.Name, p.Process.Pid)
	p.container = lifecycle.Container{Name: c.Name, ID: id, Began: time.Now()}
	ps.byID.Store(id, p)
	return id, nil
}

// Running lists the processes of a pod that have not exited.
func (ps *processes) Running(_ context.Context, pod *v1.Pod) (running []lifecycle.Container, err error) {
	ps.byID.Range(func(_, value any) bool {
		p, _ := value.(*process)
		select {
		case <-p.exited:
		default:
			if p.pod == pod.UID {
				running = append(running, p.container)
			}
		}
		return true
	})
	return running, nil
}

// StopContainer sends SIGTERM, and SIGKILL if the process has not exited after the timeout. With a timeout of 0 it sends
// only SIGKILL. It returns when the process has exited.
func (ps *processes) StopContainer(ctx context.Context, id string, timeoutSeconds int64) error {
	p, ok := ps.find(id)
	if !ok {
		return lifecycle.ErrContainerNotFound
	}
	if timeoutSeconds > 0 {
		_ = syscall.Kill(-p.Process.Pid, syscall.SIGTERM) // fails after the process has exited
	}
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(graceperiod.Duration(timeoutSeconds)):
	}
	_ = syscall.Kill(-p.Process.Pid, syscall.SIGKILL)
	<-p.exited
	return nil
}

// Exited returns a channel that is closed when the process has exited; nil: the ID is unknown. A runtime need not have this
// method. With it an exit is known before the next list.
func (ps *processes) Exited(id string) <-chan struct{} {
	if p, ok := ps.find(id); ok {
		return p.exited
	}
	return nil
}

// ExitCode returns the exit code of a process that Running no longer lists, so that its ProcessState is set. found is false
// for an unknown ID.
func (ps *processes) ExitCode(id string) (code int32, found bool) {
	p, ok := ps.find(id)
	if !ok {
		return 0, false
	}
	if status, ok := p.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int32(status.Signal()), true // as container runtimes do
	}
	return int32(p.ProcessState.ExitCode()), true
}

// find returns the process of a container.
func (ps *processes) find(id string) (p *process, found bool) {
	value, _ := ps.byID.Load(id)
	p, found = value.(*process)
	return p, found
}
