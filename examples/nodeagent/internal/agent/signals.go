package agent

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// signal handles SIGTERM and SIGINT.
func (l *loop) signal(sig os.Signal) (done bool, err error) {
	name := SignalName(sig)
	switch {
	case l.draining() && l.asked:
		l.opts.View.Say(name + ": no longer waiting for the pods.")
		return true, l.giveUp(name)
	case l.draining():
		l.asked = true
		l.opts.View.Say(name + ": the pods are being stopped, and that goes on. A second signal ends the waiting.")
		return false, nil
	case l.manual() && sig == syscall.SIGTERM:
		return false, l.trigger(name)
	}
	l.opts.View.Say(name + ": leaving. The agent stops no pod now.")
	return true, nil
}

// giveUp returns the error of an agent that leaves while pods are being stopped.
func (l *loop) giveUp(signal string) error {
	var names []string
	for _, p := range l.pods.list() {
		if _, ending := p.toldAt(); ending {
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
