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
	shown Snapshot // the last snapshot that was shown
}

// New makes a view that writes to out.
func New(out io.Writer) *View { return &View{out: out} }

// Say prints one line.
func (v *View) Say(line string) {
	v.update(func(out *bytes.Buffer) { out.WriteString(line + "\n") })
}

// Show prints a line for each change since the last snapshot.
func (v *View) Show(s Snapshot) {
	v.update(func(out *bytes.Buffer) {
		writeChanges(out, v.shown, s)
		v.shown = s
	})
}

// Finish shows the end of a shutdown: the last changes, the report, and what went wrong in single containers.
// After that the view can show another shutdown.
func (v *View) Finish(s Snapshot, report api.Report) {
	v.update(func(out *bytes.Buffer) {
		writeChanges(out, v.shown, s)
		v.shown = s
		v.shown.Began = time.Time{} // so that the next shutdown is announced
		out.WriteByte('\n')
		_ = output.WriteReport(output.Table, out, output.Unbounded(), report) // writing to a buffer cannot fail
		for _, p := range s.Pods {
			for _, c := range p.Containers {
				if problem := c.problem(p.Granted); problem != "" {
					fmt.Fprintf(out, "%s: container %s %s\n", p.Name, c.Name, problem)
				}
			}
		}
	})
}

// update calls write with a buffer and then prints the buffer in one piece, so that lines of concurrent calls
// do not mix.
func (v *View) update(write func(*bytes.Buffer)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out bytes.Buffer
	write(&out)
	_, _ = v.out.Write(out.Bytes()) // a closed terminal must not stop a drain
}
