package view

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/stopsignal"
)

// ContainerOf returns what is shown of a container: the result of its stop, and its stop signal, its preStop
// hook and whether it is a sidecar, which follow from its pod. A stop signal that only the image has is not
// known, and shown as SIGTERM.
func ContainerOf(pod *v1.Pod, result lifecycle.ContainerResult) Container {
	shown := Container{ContainerResult: result, Signal: string(stopsignal.Of(pod, result.Name, ""))}
	for i, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name != result.Name {
			continue
		}
		isInit := i < len(pod.Spec.InitContainers) // other containers may have a restart policy too
		shown.Sidecar = isInit && c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
		if c.Lifecycle != nil {
			shown.HookText = hookText(c.Lifecycle.PreStop)
		}
	}
	return shown
}

// hookText describes a preStop hook in a few words. It leaves out what may be secret: the arguments of a
// command, which may have a token, and the query of a request.
func hookText(hook *v1.LifecycleHandler) string {
	switch {
	case hook == nil:
		return ""
	case hook.Exec != nil && len(hook.Exec.Command) == 1:
		return "command " + hook.Exec.Command[0]
	case hook.Exec != nil && len(hook.Exec.Command) > 1:
		return "command " + hook.Exec.Command[0] + " …"
	case hook.Exec != nil:
		return "command"
	case hook.HTTPGet != nil:
		path, _, _ := strings.Cut(hook.HTTPGet.Path, "?")
		return "request to " + hook.HTTPGet.Port.String() + path
	case hook.Sleep != nil:
		return "sleep of " + duration.Seconds(hook.Sleep.Seconds)
	}
	return "unknown"
}

// problem says what went wrong in the stop of a container, or returns "". granted is the grace period of its
// pod in seconds.
func (c Container) problem(granted int64) string {
	switch c.Outcome {
	case lifecycle.OutcomeGraceful, lifecycle.OutcomeNotFound:
		return c.hookProblem()
	case lifecycle.OutcomeGraceExceeded:
		return fmt.Sprintf("did not end on %s and was killed %s later, when the %s of its pod were over.", c.Signal, duration.Text(c.Stopping), duration.Seconds(granted))
	case lifecycle.OutcomeForced:
		return fmt.Sprintf("was killed, because its stop failed: %v", c.Err)
	case lifecycle.OutcomeRuntimeStuck:
		return fmt.Sprintf("may still run, the container runtime could not stop it: %v", c.Err)
	case lifecycle.OutcomeLeftRunning:
		return "was left running, because the agent stopped."
	}
	return ""
}

// hookProblem says what went wrong with the preStop hook of a container, or returns "".
func (c Container) hookProblem() string {
	switch {
	case c.Hook.Outcome == lifecycle.HookFailed:
		return fmt.Sprintf("had a preStop hook (%s) that failed: %v", c.HookText, withoutURL(c.Hook.Err))
	case c.hookWasCutOff():
		return fmt.Sprintf("had a preStop hook (%s) that was cut off after %s.", c.HookText, duration.Text(c.Hook.Took))
	}
	return ""
}

// withoutURL returns the error of an HTTP request without the URL that it names, because the URL's query may
// be secret.
func withoutURL(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err
	}
	return err
}
