package agent

import (
	"fmt"
	"os"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/view"
)

// welcomeText says how many pods run and what would shut them down.
func (l *loop) welcomeText(s view.Snapshot) string {
	running := 0
	for _, p := range s.Pods {
		if p.State == view.Running {
			running++
		}
	}
	text := fmt.Sprintf("%d of %d pods run. ", running, len(s.Pods))
	switch {
	case !l.manual() && len(l.schedule()) == 0:
		return text + "Nothing stops them in order when this machine shuts down: no shutdownGracePeriod is configured. SIGTERM or Ctrl-C leaves them running."
	case !l.manual():
		return text + "They are stopped in order when this machine shuts down; SIGTERM or Ctrl-C leaves them running."
	case l.opts.ShutdownAfter > 0:
		return text + fmt.Sprintf("They are stopped in order in %v; Ctrl-C leaves at once and stops none.", l.opts.ShutdownAfter)
	}
	return text + fmt.Sprintf("They are stopped in order on SIGTERM (kill %d); Ctrl-C leaves and stops none.", os.Getpid())
}

// showInhibitor shows changes of the inhibitor.
func (l *loop) showInhibitor() {
	now := l.manager.Inhibitor()
	before := l.shownInhibitor
	l.shownInhibitor = now
	if now.Err != nil && (before.Err == nil || before.Err.Error() != now.Err.Error()) {
		l.opts.View.Say("Warning: " + now.Err.Error())
	}
	switch {
	case now.Held && !before.Held:
		l.opts.View.Say(fmt.Sprintf("This machine's shutdown is held back for up to %v (asked for: %v).", now.Granted, now.Requested))
	case before.Held && !now.Held:
		l.opts.View.Say("This machine's shutdown is no longer held back.")
	}
}
