package view

import (
	"bytes"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// View shows snapshots. It is also an [io.Writer] for the lines of a log: they do not
// disturb a table on the same terminal. Make one with [New].
type View struct {
	mu          sync.Mutex // guards the fields below, and is held while output is written
	out         io.Writer
	display     display
	shown       Snapshot // the last one
	partialLine []byte   // the beginning of a log line whose end was not written yet
}

// display is one way to show snapshots.
type display interface {
	show(out *bytes.Buffer, before, now Snapshot)
	// erase removes what is drawn in place; redraw draws it again.
	erase(out *bytes.Buffer)
	redraw(out *bytes.Buffer)
	// width is the maximum width of a line. 0 means that there is none.
	width() int
}

// New makes a view that writes to out. If out ends on a terminal that can be redrawn,
// terminal is that terminal, and the view draws one table in place. Nil means that the
// view writes a line for each change.
func New(out io.Writer, terminal *os.File) *View {
	v := &View{out: out, display: changeLines{}}
	if terminal != nil {
		v.display = &liveTable{size: func() (width, height int, err error) { return term.GetSize(int(terminal.Fd())) }}
	}
	return v
}

// Say prints one line. On a terminal it stays, above the table.
func (v *View) Say(line string) {
	v.update(func(out *bytes.Buffer) {
		v.display.erase(out)
		out.WriteString(line + "\n")
		v.display.redraw(out)
	})
}

// Show shows a snapshot in place of the one before.
func (v *View) Show(s Snapshot) {
	v.update(func(out *bytes.Buffer) {
		v.display.show(out, v.shown, s)
		v.shown = s
	})
}

// Finish shows the end of a shutdown: a table of all pods, and sentences that say what
// happened. The view can then show another shutdown.
func (v *View) Finish(s Snapshot) {
	v.update(func(out *bytes.Buffer) {
		v.display.show(out, v.shown, s)
		v.display.show(out, s, Snapshot{}) // removes the table that was drawn in place
		v.shown = s
		v.shown.Began = time.Time{}
		writeSummary(out, s, v.display.width())
	})
}

// Write prints lines of a log. A line is printed when it is complete. The error is always
// nil.
func (v *View) Write(text []byte) (int, error) {
	v.update(func(out *bytes.Buffer) {
		v.partialLine = append(v.partialLine, text...)
		end := bytes.LastIndexByte(v.partialLine, '\n') + 1
		v.display.erase(out)
		out.Write(v.partialLine[:end])
		v.display.redraw(out)
		v.partialLine = v.partialLine[end:]
	})
	return len(text), nil
}

// update writes the whole output of a function at once, so that the terminal does not
// flicker.
func (v *View) update(draw func(*bytes.Buffer)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out bytes.Buffer
	draw(&out)
	if out.Len() == 0 {
		return
	}
	_, _ = v.out.Write(out.Bytes()) // a closed terminal must not stop a drain
}
