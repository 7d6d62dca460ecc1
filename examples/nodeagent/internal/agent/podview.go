package agent

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/view"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/stopsignal"
)

// view returns what the view shows of the pod. termination is nil before its containers
// are told to stop.
func (p *pod) view(now time.Time, termination *lifecycle.Termination) view.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	shown := view.Pod{Name: p.name(), Priority: p.priority, Bucket: p.bucket, State: p.stateLocked(), Granted: p.grantedSeconds, FinishedBeforeStop: p.finishedBeforeStop}
	if p.problem != nil {
		shown.Problem = strings.ReplaceAll(p.problem.Error(), "\n", "; ")
	}
	if p.stopBegan.IsZero() {
		return shown
	}
	shown.Took = now.Sub(p.stopBegan)
	if !p.stopEnded.IsZero() {
		shown.Took = p.stopEnded.Sub(p.stopBegan)
	}
	if termination != nil {
		shown.Deadline = termination.Deadline()
		for _, c := range termination.Result().Containers {
			shown.Containers = append(shown.Containers, p.containerView(c))
		}
	}
	return shown
}

// stateLocked returns the state of the pod as a whole.
func (p *pod) stateLocked() view.State {
	switch {
	case !p.stopEnded.IsZero() && p.outsideShutdown:
		return view.Stopped
	case !p.stopEnded.IsZero():
		return view.Gone
	case !p.stopBegan.IsZero():
		return view.Ending
	case p.problem != nil:
		return view.NotStarted
	case !isClosed(p.startEnded):
		return view.Starting
	case p.finishedLocked():
		return view.Finished
	case p.waitingLocked():
		return view.Waiting
	}
	return view.Running
}

// containerView returns what the view shows of a container: the result of its stop and
// what its manifest says.
func (p *pod) containerView(result lifecycle.ContainerResult) view.Container {
	shown := view.Container{ContainerResult: result, Signal: string(stopsignal.Of(p.spec, result.Name, ""))}
	for _, list := range [][]v1.Container{p.spec.Spec.InitContainers, p.spec.Spec.Containers} {
		for _, c := range list {
			if c.Name != result.Name {
				continue
			}
			shown.Sidecar = c.RestartPolicy != nil
			if c.Lifecycle != nil {
				shown.HookText = hookText(c.Lifecycle.PreStop)
			}
		}
	}
	return shown
}

// hookText describes a preStop hook. It leaves out what may be secret: the arguments of a
// command, as in "Authorization: Bearer ...", and the query of a request.
func hookText(hook *v1.LifecycleHandler) string {
	switch {
	case hook == nil:
		return ""
	case hook.Exec != nil:
		return commandText(hook.Exec.Command)
	case hook.HTTPGet != nil:
		path, _, _ := strings.Cut(hook.HTTPGet.Path, "?")
		return "request to " + hook.HTTPGet.Port.String() + path
	case hook.Sleep != nil:
		return fmt.Sprintf("sleep of %d s", hook.Sleep.Seconds)
	}
	return "unknown"
}

// commandText returns the name of a program, with "…" for any arguments.
func commandText(command []string) string {
	switch len(command) {
	case 0:
		return "command"
	case 1:
		return "command " + command[0]
	}
	return "command " + command[0] + " …"
}
