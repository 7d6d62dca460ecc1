package view

import (
	"bytes"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// View shows snapshots. It is an [io.Writer] for the lines of a log, which it
// keeps apart from what it draws. Make one with [New].
type View struct {
	mu   sync.Mutex // guards all below, and keeps lines whole while they are written
	out  io.Writer
	draw drawing
	last Snapshot
	part []byte // the beginning of a log line
}

// drawing is one way to show snapshots.
type drawing interface {
	show(out *bytes.Buffer, before, now Snapshot)
	// wipe takes away what was drawn in place; restore draws it again.
	wipe(out *bytes.Buffer)
	restore(out *bytes.Buffer)
	// width is how wide a line may be; 0: as wide as it likes.
	width() int
}

// New makes a view that writes to out. Where that is a terminal in the end, which a table
// can be redrawn on, terminal is it; nil: everything else, which gets a line for each
// change.
func New(out io.Writer, terminal *os.File) *View {
	v := &View{out: out, draw: lines{}}
	if terminal != nil {
		v.draw = &live{size: func() (width, height int, err error) { return term.GetSize(int(terminal.Fd())) }}
	}
	return v
}

// Say prints one line. On a terminal it stays, above the table.
func (v *View) Say(line string) {
	v.put(func(out *bytes.Buffer) {
		v.draw.wipe(out)
		out.WriteString(line + "\n")
		v.draw.restore(out)
	})
}

// Show shows how things are now.
func (v *View) Show(s Snapshot) {
	v.put(func(out *bytes.Buffer) {
		v.draw.show(out, v.last, s)
		v.last = s
	})
}

// Finish shows the end: the table of what each pod got, and what happened, in
// sentences. The next shutdown, if there is one, is shown from its beginning.
func (v *View) Finish(s Snapshot) {
	v.put(func(out *bytes.Buffer) {
		v.draw.show(out, v.last, s)
		v.draw.show(out, s, Snapshot{}) // takes away what was drawn in place
		v.last = s
		v.last.Began = time.Time{}
		writeSummary(out, s, v.draw.width())
	})
}

// Write takes lines of a log. A line is shown once it is complete.
func (v *View) Write(text []byte) (int, error) {
	v.put(func(out *bytes.Buffer) {
		v.part = append(v.part, text...)
		end := bytes.LastIndexByte(v.part, '\n') + 1
		v.draw.wipe(out)
		out.Write(v.part[:end])
		v.draw.restore(out)
		v.part = v.part[end:]
	})
	return len(text), nil
}

// put writes all that do has to say at once, so that nothing flickers.
func (v *View) put(do func(*bytes.Buffer)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out bytes.Buffer
	do(&out)
	if out.Len() == 0 {
		return
	}
	_, _ = v.out.Write(out.Bytes()) // a closed terminal must not stop a drain
}
