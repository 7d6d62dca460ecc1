package agent

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// handleSignal handles SIGTERM and SIGINT. Outside a drain the agent leaves at once. In a drain a first signal
// makes it leave after the drain, and a second one at once, with an error. done says that it leaves now.
func (l *loop) handleSignal(sig os.Signal) (done bool, err error) {
	name := unix.SignalName(sig.(syscall.Signal))
	switch {
	case l.draining() && l.interrupted:
		l.opts.View.Say(name + ": no longer waiting for the pods.")
		return true, fmt.Errorf("a second %s ended the waiting for %s", name, strings.Join(l.killer.underWay(), ", "))
	case l.draining():
		l.interrupted = true
		l.opts.View.Say(name + ": the pods are still being stopped. A second signal ends the waiting.")
		return false, nil
	}
	l.opts.View.Say(name + ": leaving. The agent stops no pod now.")
	return true, nil
}
