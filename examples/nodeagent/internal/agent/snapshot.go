package agent

import (
	"fmt"
	"os"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/view"
	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/stopsignal"
)

// snapshot returns the current state of all pods for the view.
func (l *loop) snapshot(now time.Time) view.Snapshot {
	s := view.Snapshot{Now: now, Began: l.began, Allowed: l.allowed()}
	for _, p := range l.pods.list() {
		termination, _ := l.terminator.Termination(p.spec.UID)
		s.Pods = append(s.Pods, p.view(now, termination))
	}
	return s
}

// allowed returns how long a shutdown may take: the pods' time by the schedule and the
// time for what is done besides the kills, or less if the host grants less. Without a
// schedule it is the longest grace period of a pod.
func (l *loop) allowed() time.Duration {
	if fitted := l.manager.Plan().Fitted; len(fitted.Schedule) > 0 {
		return fitted.Total() - fitted.Floor - fitted.Margin
	}
	longest := graceperiod.DefaultSeconds
	for _, p := range l.pods.list() {
		if own := p.spec.Spec.TerminationGracePeriodSeconds; own != nil {
			longest = max(longest, *own)
		}
	}
	return graceperiod.Duration(longest)
}

// welcome returns the text that says how many pods run and what would shut them down.
func (l *loop) welcome(s view.Snapshot) string {
	running := 0
	for _, p := range s.Pods {
		if p.State == view.Running {
			running++
		}
	}
	text := fmt.Sprintf("%d of %d pods run. ", running, len(s.Pods))
	switch {
	case !l.manual() && len(l.schedule()) == 0:
		return text + "Nothing stops them in order when this machine shuts down: no shutdownGracePeriod is configured. SIGTERM or Ctrl-C leaves them running."
	case !l.manual():
		return text + "They are stopped in order when this machine shuts down; SIGTERM or Ctrl-C leaves them running."
	case l.opts.ShutdownAfter > 0:
		return text + fmt.Sprintf("They are stopped in order in %v; Ctrl-C leaves at once and stops none.", l.opts.ShutdownAfter)
	}
	return text + fmt.Sprintf("They are stopped in order on SIGTERM (kill %d); Ctrl-C leaves and stops none.", os.Getpid())
}

// tellInhibitor shows changes of the inhibitor.
func (l *loop) tellInhibitor() {
	now := l.manager.Inhibitor()
	before := l.shown
	l.shown = now
	if now.Err != nil && (before.Err == nil || before.Err.Error() != now.Err.Error()) {
		l.opts.View.Say("Warning: " + now.Err.Error())
	}
	switch {
	case now.Held && !before.Held:
		l.opts.View.Say(fmt.Sprintf("This machine's shutdown is held back for up to %v (asked for: %v).", now.Granted, now.Requested))
	case before.Held && !now.Held:
		l.opts.View.Say("This machine's shutdown is no longer held back.")
	}
}

func (p *pod) name() string { return p.spec.Namespace + "/" + p.spec.Name }

// view returns what the view shows of a pod. termination is nil before its containers are
// told to stop.
func (p *pod) view(now time.Time, termination *lifecycle.Termination) view.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	shown := view.Pod{Name: p.name(), Priority: p.priority, Bucket: p.bucket, State: p.stateLocked(), Granted: p.granted, Finished: p.finished}
	if p.problem != nil {
		shown.Problem = strings.ReplaceAll(p.problem.Error(), "\n", "; ")
	}
	if p.told.IsZero() {
		return shown
	}
	shown.Took = now.Sub(p.told)
	if !p.gone.IsZero() {
		shown.Took = p.gone.Sub(p.told)
	}
	if termination != nil {
		shown.Deadline = termination.Deadline()
		for _, c := range termination.Result().Containers {
			shown.Containers = append(shown.Containers, p.container(c))
		}
	}
	return shown
}

// stateLocked returns the state of the pod as a whole.
func (p *pod) stateLocked() view.State {
	switch {
	case !p.gone.IsZero() && p.byHand:
		return view.Stopped
	case !p.gone.IsZero():
		return view.Gone
	case !p.told.IsZero():
		return view.Ending
	case p.problem != nil:
		return view.NotStarted
	case !isClosed(p.settled):
		return view.Starting
	case p.finishedLocked():
		return view.Finished
	case p.waitingLocked():
		return view.Waiting
	}
	return view.Running
}

// container returns the result of a container together with what its manifest says.
func (p *pod) container(result lifecycle.ContainerResult) view.Container {
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

// hookText describes a preStop hook without possible secrets: the arguments of a command,
// as in "Authorization: Bearer ...", and the query of a request.
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

// commandText returns the name of a program, and whether it has arguments.
func commandText(command []string) string {
	switch len(command) {
	case 0:
		return "command"
	case 1:
		return "command " + command[0]
	}
	return "command " + command[0] + " …"
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
