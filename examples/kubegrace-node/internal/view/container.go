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

// hookText describes the preStop hook of a container in a few words; "" if it has none. It leaves out what may
// be secret: the arguments of a command, which may have a token, and the query of a request.
func hookText(pod *v1.Pod, container string) string {
	containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	i := slices.IndexFunc(containers, func(c v1.Container) bool { return c.Name == container })
	if i < 0 || containers[i].Lifecycle == nil {
		return ""
	}
	switch hook := containers[i].Lifecycle.PreStop; {
	case hook == nil:
		return ""
	case hook.Exec != nil && len(hook.Exec.Command) > 0:
		return "command " + hook.Exec.Command[0]
	case hook.HTTPGet != nil:
		path, _, _ := strings.Cut(hook.HTTPGet.Path, "?")
		return "request to " + hook.HTTPGet.Port.String() + path
	case hook.Sleep != nil:
		return "sleep of " + duration.Seconds(hook.Sleep.Seconds)
	}
	return "unknown"
}

// problemText says what went wrong in the stop of a container; "" if nothing did. granted is the grace period of its
// pod in seconds. A hook that was cut off because its container had exited is no problem: it had nothing left to
// prepare.
func problemText(pod *v1.Pod, c lifecycle.ContainerResult, granted int64) string {
	switch {
	case c.Outcome == lifecycle.OutcomeGraceExceeded:
		return fmt.Sprintf("did not end on %s and was killed %s later, when the %s of its pod were over.", stopsignal.Of(pod, c.Name, ""), duration.Text(c.Stopping), duration.Seconds(granted))
	case c.Outcome == lifecycle.OutcomeForced:
		return fmt.Sprintf("was killed, because its stop failed: %v", c.Err)
	case c.Hook.Outcome == lifecycle.HookFailed:
		return fmt.Sprintf("had a preStop hook (%s) that failed: %v", hookText(pod, c.Name), withoutURL(c.Hook.Err))
	case c.Hook.Outcome == lifecycle.HookAbandoned, c.Hook.Outcome == lifecycle.HookCut && c.Hook.Cause != lifecycle.CauseContainerExited:
		return fmt.Sprintf("had a preStop hook (%s) that was cut off after %s.", hookText(pod, c.Name), duration.Text(c.Hook.Took))
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
