package view

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/output"
)

// View shows snapshots with one line for each change. Make one with [New].
type View struct {
	mu    sync.Mutex // guards the fields below, and is held while output is written
	out   io.Writer
	shown Snapshot // the last one
}

// New makes a view that writes to out.
func New(out io.Writer) *View { return &View{out: out} }

// Say prints one line.
func (v *View) Say(line string) {
	v.update(func(out *bytes.Buffer) { out.WriteString(line + "\n") })
}

// Show shows what has changed since the snapshot before.
func (v *View) Show(s Snapshot) {
	v.update(func(out *bytes.Buffer) {
		writeChanges(out, v.shown, s)
		v.shown = s
	})
}

// Finish shows the end of a shutdown: what has changed, the report, and what went wrong in single
// containers. The view can then show another shutdown.
func (v *View) Finish(s Snapshot, report api.Report) {
	v.update(func(out *bytes.Buffer) {
		writeChanges(out, v.shown, s)
		v.shown = s
		v.shown.Began = time.Time{}
		out.WriteByte('\n')
		_ = output.WriteReport(output.Table, out, output.Unbounded(), report) // a buffer takes all
		for _, p := range s.Pods {
			for _, c := range p.Containers {
				if problem := c.problem(p.Granted); problem != "" {
					fmt.Fprintf(out, "%s: container %s %s\n", p.Name, c.Name, problem)
				}
			}
		}
	})
}

// update writes the whole output of a function at once.
func (v *View) update(write func(*bytes.Buffer)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out bytes.Buffer
	write(&out)
	_, _ = v.out.Write(out.Bytes()) // a closed terminal must not stop a drain
}
