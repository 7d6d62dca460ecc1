package agent

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// handleSignal handles SIGTERM and SIGINT. It returns done if the agent then leaves.
func (l *loop) handleSignal(sig os.Signal) (done bool, err error) {
	name := SignalName(sig)
	switch {
	case l.draining() && l.interrupted:
		l.opts.View.Say(name + ": no longer waiting for the pods.")
		return true, l.abandonedError(name)
	case l.draining():
		l.interrupted = true
		l.opts.View.Say(name + ": the pods are being stopped, and that goes on. A second signal ends the waiting.")
		return false, nil
	case l.manual() && sig == syscall.SIGTERM:
		return false, l.trigger(name)
	}
	l.opts.View.Say(name + ": leaving. The agent stops no pod now.")
	return true, nil
}

// abandonedError returns an error that names the pods that are still being stopped.
func (l *loop) abandonedError(signal string) error {
	var names []string
	for _, p := range l.pods.list() {
		if _, underWay := p.shutdownStop(); underWay {
			names = append(names, p.name())
		}
	}
	return fmt.Errorf("a second %s ended the waiting for %s", signal, strings.Join(names, ", "))
}

// SignalName returns the common name of a signal.
func SignalName(sig os.Signal) string {
	switch sig {
	case syscall.SIGTERM:
		return "SIGTERM"
	case os.Interrupt:
		return "SIGINT"
	}
	return sig.String()
}
