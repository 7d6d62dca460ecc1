package view

import (
	"bytes"
	"fmt"
	"time"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// lines shows a snapshot as one line for each change, where nothing can be
// redrawn: in a pipe, a file or a journal.
type lines struct{}

func (lines) wipe(*bytes.Buffer)    {}
func (lines) restore(*bytes.Buffer) {}
func (lines) width() int            { return 0 }

func (l lines) show(out *bytes.Buffer, before, now Snapshot) {
	known := map[string]Pod{}
	for _, p := range before.Pods {
		known[p.Name] = p
	}
	if before.Began.IsZero() && !now.Began.IsZero() {
		fmt.Fprintln(out, headline(now))
	}
	for _, p := range now.Pods {
		old := known[p.Name]
		for i, c := range p.Containers {
			l.container(out, now, p, c, phaseOf(old, i))
		}
		if p.State != old.State && p.State != Ending {
			l.line(out, now, p.Name, p.Doing(!now.Began.IsZero()))
		}
	}
}

// container prints what is new about one container. How the only one of a pod
// has ended is said with the pod.
func (l lines) container(out *bytes.Buffer, now Snapshot, p Pod, c Container, before lifecycle.Phase) {
	alone := len(p.Containers) == 1
	if c.Phase == before || c.Phase == "" || alone && c.Phase == lifecycle.PhaseEnded {
		return
	}
	name, doing := p.Name, c.doing()
	if !alone {
		name += " " + c.Name
	}
	if c.Phase != lifecycle.PhaseEnded {
		doing += fmt.Sprintf(" (%s left)", span(p.Deadline.Sub(now.Now)))
	}
	l.line(out, now, name, doing)
}

// line prints when, who and what.
func (lines) line(out *bytes.Buffer, now Snapshot, who, what string) {
	when := ""
	if !now.Began.IsZero() {
		when = fmt.Sprintf("%6.1f s  ", max(now.Now.Sub(now.Began), 0).Round(100*time.Millisecond).Seconds())
	}
	fmt.Fprintf(out, "%s%-24s %s\n", when, who, what)
}

// phaseOf is the phase of a pod's i-th container, "" if there was none.
func phaseOf(p Pod, i int) lifecycle.Phase {
	if i < len(p.Containers) {
		return p.Containers[i].Phase
	}
	return ""
}
