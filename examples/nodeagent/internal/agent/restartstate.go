package agent

import "github.com/kubegrace/kubegrace/lifecycle"

// restartState is how often a container was restarted, and whether it waits for a
// restart.
type restartState struct {
	count   int
	waiting bool
}

// containerFinished records that a container has exited and is not restarted.
func (p *pod) containerFinished() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finishedCount++
	p.signalChangeLocked()
}

// containerWaits records that the i-th container waits to be restarted.
func (p *pod) containerWaits(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restarts[i].waiting = true
	p.signalChangeLocked()
}

// containerRestarted records that the i-th container was restarted as c.
func (p *pod) containerRestarted(i int, c lifecycle.Container, exited <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.containers[i], p.exited[i] = c, exited
	p.restarts[i] = restartState{count: p.restarts[i].count + 1}
	p.signalChangeLocked()
}

// signalChangeLocked closes the channel of containersChanged and replaces it.
func (p *pod) signalChangeLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// waitingLocked reports whether a container of the pod waits to be restarted.
func (p *pod) waitingLocked() bool {
	for _, r := range p.restarts {
		if r.waiting {
			return true
		}
	}
	return false
}

// restartStateOf returns the restartState of a container, or the zero value if the pod
// has none of that name.
func (p *pod) restartStateOf(name string) restartState {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, c := range p.containers {
		if c.Name == name {
			return p.restarts[i]
		}
	}
	return restartState{}
}
