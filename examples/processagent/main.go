//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/logind"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
)

// node is the list of the containers of all pods, in start order.
type node []container

// container is a container of a pod.
type container struct {
	*exec.Cmd // the process
	pod       *v1.Pod
	name, id  string
	running   *atomic.Bool
	exited    chan struct{} // closed when the process has exited
}

func main() {
	flag.Parse()
	n := must(readPods(flag.Arg(0)))
	signalled, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctx, cancel := context.WithCancel(context.WithoutCancel(signalled))
	config := plan.Config{ShutdownGracePeriodByPodPriority: []plan.PodPriorityGracePeriod{
		{Priority: 0, ShutdownGracePeriodSeconds: 20}, {Priority: 1000, ShutdownGracePeriodSeconds: 10},
	}}

	terminator := must(lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: n, Commands: n, Exits: n}))
	host := must(logind.New(logind.Options{}))
	manager := must(shutdown.NewManager(shutdown.Options{
		Config: config, ListPods: shutdown.ListPodsFunc(n.pods, nil), Source: host, OnReport: printReport,
		Killer: podkiller.New(terminator, podkiller.Options{}),
	}))
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx) }() // holds the inhibitor lock; drains the pods in a shutdown
	for _, c := range n {
		if err := terminator.Start(ctx, c.pod, c.name, c.start); err != nil {
			log.Print(err)
		}
	}
	<-signalled.Done()                       // on SIGTERM or Ctrl-C
	report, err := manager.TerminateAll(ctx) // drains the pods without a shutdown of the machine
	cancel()                                 // ends Run, which releases the inhibitor lock
	must(report, errors.Join(err, <-ended, terminator.Close(context.WithoutCancel(ctx))))
}

// must returns value, or ends the program if err is not nil.
func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

// start starts the container's process.
func (c container) start(context.Context) error {
	if err := c.Start(); err != nil {
		return err
	}
	c.running.Store(true)
	go func() {
		_ = c.Wait()                                      // sets ProcessState, which has the exit code
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // the rest of its process group
		c.running.Store(false)                            // first, so that Running agrees with the line below
		fmt.Println("container", c.id, "has ended:", c.ProcessState)
		close(c.exited)
	}()
	return nil
}

// Running implements [lifecycle.Runtime]: it lists the containers of a pod that have not exited.
func (n node) Running(_ context.Context, pod *v1.Pod) (running []lifecycle.Container, _ error) {
	for _, c := range n {
		if c.pod.Namespace == pod.Namespace && c.pod.Name == pod.Name && c.running.Load() {
			running = append(running, lifecycle.Container{Name: c.name, ID: c.id})
		}
	}
	return running, nil
}

// StopContainer implements [lifecycle.Runtime]: it sends SIGTERM, SIGKILL after the timeout, and waits for the exit.
func (n node) StopContainer(ctx context.Context, id string, timeoutSeconds int64) error {
	c := n.find(id)
	_ = c.Process.Signal(syscall.SIGTERM) // fails only after the process has exited
	time.AfterFunc(time.Duration(timeoutSeconds)*time.Second, func() { _ = c.Process.Kill() })
	select {
	case <-c.exited:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// RunInContainer implements [lifecycle.CommandRunner]. The command joins its container's process group, to end with it.
func (n node) RunInContainer(ctx context.Context, id string, command []string, _ time.Duration) ([]byte, error) {
	hook := exec.CommandContext(ctx, command[0], command[1:]...)
	hook.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: n.find(id).Process.Pid}
	hook.WaitDelay = time.Second // do not wait for children that keep the output open
	return hook.CombinedOutput()
}

// find returns the container with this ID. Exited implements [lifecycle.ExitWatcher].
func (n node) find(id string) container         { return n[slices.IndexFunc(n, hasID(id))] }
func (n node) Exited(id string) <-chan struct{} { return n.find(id).exited }
func hasID(id string) func(container) bool      { return func(c container) bool { return c.id == id } }

// pods returns the pods with a running container.
func (n node) pods() (pods []*v1.Pod) {
	for _, c := range n {
		if c.running.Load() {
			pods = append(pods, c.pod)
		}
	}
	return slices.Compact(pods) // once each: the containers of a pod are adjacent
}

// printReport prints how each pod of a drain has ended.
func printReport(_ context.Context, report shutdown.Report) {
	for _, p := range report.Pods {
		fmt.Println("pod", p.Namespace+"/"+p.Name, "had", p.GrantedSeconds, "s to end:", p.Outcome, p.Error)
	}
}

// readPods returns the containers of all manifests in a folder. None is started yet.
func readPods(folder string) (n node, _ error) {
	_, folderErr := os.ReadDir(folder) // Glob returns no error for a missing folder
	files, globErr := filepath.Glob(filepath.Join(folder, "*.yaml"))
	for _, file := range files {
		pod := &v1.Pod{}
		pod.Namespace = v1.NamespaceDefault
		text, err := os.ReadFile(file)
		if err := errors.Join(err, yaml.UnmarshalStrict(text, pod)); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			id := filepath.Join(pod.Namespace, pod.Name, c.Name)
			if len(c.Command) == 0 || slices.ContainsFunc(n, hasID(id)) {
				return nil, fmt.Errorf("%s: container %s has no command or a duplicate name", file, id)
			}
			cmd := exec.Command(c.Command[0], slices.Concat(c.Command[1:], c.Args)...)
			cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = os.Stdout, os.Stderr, &syscall.SysProcAttr{Setpgid: true}
			n = append(n, container{Cmd: cmd, pod: pod, name: c.Name, id: id, running: &atomic.Bool{}, exited: make(chan struct{})})
		}
	}
	return n, errors.Join(folderErr, globErr)
}
