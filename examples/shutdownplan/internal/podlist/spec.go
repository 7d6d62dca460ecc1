package podlist

// spec reads the spec of a pod; that of another kind has other fields, or none of
// these.
func (r reader) spec(o *object) error {
	if !o.mayBePod() {
		return nil
	}
	pod := &o.pod
	return r.values.object(func(name []byte) (bool, error) {
		switch string(name) {
		case "nodeName":
			return true, r.shared(&o.node)
		case "priority":
			value, ok, err := r.number(32)
			pod.Priority, pod.HasPriority = int32(value), ok
			return true, err
		case "priorityClassName":
			return true, r.shared(&pod.Class)
		case "terminationGracePeriodSeconds":
			value, ok, err := r.number(64)
			pod.Grace, o.grace = value, ok
			return true, err
		case "containers":
			return true, r.array(func(i int) error { return r.container(pod, i, false) })
		case "initContainers":
			return true, r.array(func(i int) error { return r.container(pod, i, true) })
		}
		return false, nil
	})
}

// container reads the hook of a container. Init containers that run to their end
// before the others begin have none.
func (r reader) container(pod *Pod, index int, init bool) error {
	hook := Hook{Index: index, Sidecar: init, Seconds: -1}
	restarted := false
	err := r.values.object(func(name []byte) (bool, error) {
		switch string(name) {
		case "name":
			return true, r.shared(&hook.Container)
		case "restartPolicy":
			policy, err := r.text()
			restarted = string(policy) == "Always"
			return true, err
		case "lifecycle":
			return true, r.lifecycle(&hook)
		}
		return false, nil
	})
	if init && restarted {
		pod.Sidecars = append(pod.Sidecars, Sidecar{Name: hook.Container, Index: index})
	}
	if hook.Type != "" && (!init || restarted) {
		pod.Hooks = append(pod.Hooks, hook)
	}
	return err
}

func (r reader) lifecycle(hook *Hook) error {
	return r.values.object(func(name []byte) (bool, error) {
		if string(name) != "preStop" {
			return false, nil
		}
		return true, r.preStop(hook)
	})
}

// preStop reads a hook. One with several handlers is refused by the API server.
func (r reader) preStop(hook *Hook) error {
	return r.values.object(func(name []byte) (bool, error) {
		if r.null() {
			return false, nil
		}
		switch string(name) {
		case "exec":
			hook.Type = HookExec
			return true, r.exec(hook)
		case "httpGet":
			hook.Type = HookHTTP
		case "tcpSocket":
			hook.Type = HookTCP
		case "sleep":
			hook.Type, hook.Seconds = HookSleep, 0
			return true, r.values.object(func(name []byte) (bool, error) {
				if string(name) != "seconds" {
					return false, nil
				}
				seconds, _, err := r.number(64)
				hook.Seconds = seconds
				return true, err
			})
		}
		return false, nil
	})
}

func (r reader) exec(hook *Hook) error {
	return r.values.object(func(name []byte) (bool, error) {
		if string(name) != "command" {
			return false, nil
		}
		var command []string
		err := r.array(func(int) error {
			word, err := r.text()
			command = append(command, string(word))
			return err
		})
		hook.Seconds = sleepSeconds(command)
		return true, err
	})
}
