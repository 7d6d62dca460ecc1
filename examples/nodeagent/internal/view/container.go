package view

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/stopsignal"
)

// ContainerOf returns what is shown of a container: the result of its stop and what its pod says.
func ContainerOf(pod *v1.Pod, result lifecycle.ContainerResult) Container {
	shown := Container{ContainerResult: result, Signal: string(stopsignal.Of(pod, result.Name, ""))}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name != result.Name {
			continue
		}
		shown.Sidecar = c.RestartPolicy != nil
		if c.Lifecycle != nil {
			shown.HookText = hookText(c.Lifecycle.PreStop)
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
		return fmt.Sprintf("sleep of %d s", hook.Sleep.Seconds)
	}
	return "unknown"
}
