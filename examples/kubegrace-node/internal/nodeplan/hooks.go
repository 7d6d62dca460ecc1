package nodeplan

import (
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// hooksOf returns the preStop hooks of all containers and sidecars of a pod. A hook that sleeps for longer than
// graceSeconds is marked as cut short.
func hooksOf(pod *v1.Pod, graceSeconds int64) (hooks []Hook) {
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if c.Lifecycle == nil || c.Lifecycle.PreStop == nil {
			continue
		}
		hook := Hook{Container: c.Name}
		switch preStop := c.Lifecycle.PreStop; {
		case preStop.Exec != nil:
			hook.Type, hook.Seconds = "exec", sleepSeconds(preStop.Exec.Command)
		case preStop.HTTPGet != nil:
			hook.Type = "httpGet"
		case preStop.TCPSocket != nil:
			hook.Type = "tcpSocket"
		case preStop.Sleep != nil:
			hook.Type, hook.Seconds = "sleep", &preStop.Sleep.Seconds
		default:
			continue
		}
		hook.CutShort = hook.Seconds != nil && *hook.Seconds > graceSeconds
		hooks = append(hooks, hook)
	}
	return hooks
}

// sleepSeconds returns for how many seconds the command of a hook sleeps, so that the plan can tell whether
// the hook fits. It takes the number after the first word "sleep" that a number follows, also in a shell's
// script such as "nginx -s quit; sleep 20". Without one it returns nil: how long the hook takes is not known.
func sleepSeconds(command []string) *int64 {
	words := strings.Fields(strings.Join(command, " "))
	for i, word := range words[:max(len(words)-1, 0)] {
		if word != "sleep" && !strings.HasSuffix(word, "/sleep") {
			continue
		}
		number := strings.TrimSuffix(strings.TrimRight(words[i+1], ";&"), "s")
		if seconds, err := strconv.ParseInt(number, 10, 64); err == nil && seconds >= 0 {
			return &seconds
		}
	}
	return nil
}
