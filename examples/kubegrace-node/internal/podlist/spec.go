package podlist

// spec reads the spec of an object that may be a pod.
func (r objectReader) spec(o *object) error {
	if !o.mayBePod() {
		return nil
	}
	pod := &o.pod
	return r.eachField(func(name []byte) (bool, error) {
		switch string(name) {
		case "nodeName":
			return true, r.intern(&o.node)
		case "priority":
			value, ok, err := r.number(32)
			pod.Priority, pod.HasPriority = int32(value), ok
			return true, err
		case "priorityClassName":
			return true, r.intern(&pod.Class)
		case "terminationGracePeriodSeconds":
			value, ok, err := r.number(64)
			pod.Grace, o.hasGrace = value, ok
			return true, err
		case "containers":
			return true, r.eachItem(func(i int) error { return r.container(pod, i, false) })
		case "initContainers":
			return true, r.eachItem(func(i int) error { return r.container(pod, i, true) })
		}
		return false, nil
	})
}

// container reads the preStop hook of a container. Only sidecars of the init containers run
// in a shutdown, so the hooks of the others are dropped.
func (r objectReader) container(pod *Pod, index int, init bool) error {
	hook := Hook{Index: index, Sidecar: init, Seconds: -1}
	isSidecar := false
	err := r.eachField(func(name []byte) (bool, error) {
		switch string(name) {
		case "name":
			return true, r.intern(&hook.Container)
		case "restartPolicy":
			policy, err := r.text()
			isSidecar = init && string(policy) == "Always"
			return true, err
		case "lifecycle":
			return true, r.lifecycle(&hook)
		}
		return false, nil
	})
	if isSidecar {
		pod.Sidecars = append(pod.Sidecars, Sidecar{Name: hook.Container, Index: index})
	}
	if hook.Type != "" && (!init || isSidecar) {
		pod.Hooks = append(pod.Hooks, hook)
	}
	return err
}

func (r objectReader) lifecycle(hook *Hook) error {
	return r.eachField(func(name []byte) (bool, error) {
		if string(name) != "preStop" {
			return false, nil
		}
		return true, r.preStop(hook)
	})
}

// preStop reads a hook. It has one handler, because the API server refuses several.
func (r objectReader) preStop(hook *Hook) error {
	return r.eachField(func(name []byte) (bool, error) {
		if r.isNull() {
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
			return true, r.eachField(func(name []byte) (bool, error) {
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

func (r objectReader) exec(hook *Hook) error {
	return r.eachField(func(name []byte) (bool, error) {
		if string(name) != "command" {
			return false, nil
		}
		var command []string
		err := r.eachItem(func(int) error {
			word, err := r.text()
			command = append(command, string(word))
			return err
		})
		hook.Seconds = sleepSeconds(command)
		return true, err
	})
}
