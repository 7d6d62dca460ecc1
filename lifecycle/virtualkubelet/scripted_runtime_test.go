package virtualkubelet_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// scriptedRuntime is a runtime whose containers follow the script for their name. Killed containers exit with
// 137, others with the code in exitCodes.
type scriptedRuntime struct {
	*lifecycletest.Runtime

	mu               sync.Mutex                                   // guards scripts, exitCodes and starts
	starts           []containerStart                             // in order
	scripts          map[string]lifecycletest.Script              // by container name
	exitCodes        map[string]int32                             // exit codes by container name
	beforeStart      func(ctx context.Context, name string) error // called first by StartContainer, which returns its error; nil: no call
	knowsNoExitCodes bool                                         // ExitCode knows no exit code
	cannotWatchExits bool                                         // Exited returns nil, so that exits are only found by lists
	losesReplies     bool                                         // StartContainer starts the container but returns errAway
	listsHooksAsDone bool                                         // Running says of each container that its preStop hook has run
	started          sync.Map                                     // the IDs of all runs that were started
}

// containerStart is one call of StartContainer, which may have failed.
type containerStart struct {
	name string
	at   time.Time // when it began
}

func newScriptedRuntime() *scriptedRuntime {
	return &scriptedRuntime{Runtime: lifecycletest.NewRuntime(), scripts: map[string]lifecycletest.Script{}, exitCodes: map[string]int32{}}
}

// StartContainer starts a run with the ID UID/NAME. Later runs of the same container are UID/NAME#1, UID/NAME#2 and so
// on.
func (r *scriptedRuntime) StartContainer(ctx context.Context, pod *v1.Pod, c *v1.Container) (string, error) {
	r.change(func() { r.starts = append(r.starts, containerStart{name: c.Name, at: time.Now()}) })
	if r.beforeStart != nil {
		if err := r.beforeStart(ctx, c.Name); err != nil {
			return "", err
		}
	}
	id := string(pod.UID) + "/" + c.Name
	for n := 1; ; n++ { // until an ID is free
		if _, isTaken := r.started.LoadOrStore(id, true); !isTaken {
			break
		}
		id = fmt.Sprintf("%s/%s#%d", pod.UID, c.Name, n)
	}
	var script lifecycletest.Script
	r.change(func() { script = r.scripts[c.Name] })
	r.Start(pod, c.Name, id, script)
	if r.losesReplies {
		return "", errAway
	}
	return id, nil
}

func (r *scriptedRuntime) Exited(id string) <-chan struct{} {
	if r.cannotWatchExits {
		return nil
	}
	return r.Runtime.Exited(id)
}

func (r *scriptedRuntime) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	running, err := r.Runtime.Running(ctx, pod)
	for i := range running {
		running[i].PreStopDone = r.listsHooksAsDone
	}
	return running, err
}

// ExitCode returns 137 for a killed container, and otherwise the code that the test has set for the container's name.
func (r *scriptedRuntime) ExitCode(id string) (int32, bool) {
	code, exited := r.Runtime.ExitCode(id)
	if isKnown, wasKilled := exited && !r.knowsNoExitCodes, code == 137; !isKnown || wasKilled {
		return code, isKnown
	}
	name, _, _ := strings.Cut(id[strings.LastIndex(id, "/")+1:], "#")
	r.change(func() { code = r.exitCodes[name] })
	return code, true
}

// wasStarted reports whether a run with this ID was started.
func (r *scriptedRuntime) wasStarted(id string) bool {
	_, found := r.started.Load(id)
	return found
}

// change calls do with the mutex held: it may change or read scripts, exitCodes and starts while containers run.
func (r *scriptedRuntime) change(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
}
