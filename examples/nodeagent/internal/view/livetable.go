package view

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// The size that is assumed if the terminal does not tell its size.
const (
	defaultWidth  = 80
	defaultHeight = 24
)

// liveTable draws one table on a terminal, and redraws it in place.
type liveTable struct {
	size  func() (width, height int, err error) // of the terminal
	drawn string                                // what is drawn now; the cursor is below it
}

// terminalSize returns the width and height of the terminal in characters.
func (l *liveTable) terminalSize() (width, height int) {
	width, height, err := l.size()
	if err != nil || width <= 0 || height <= 0 {
		return defaultWidth, defaultHeight
	}
	return width, height
}

func (l *liveTable) width() int {
	width, _ := l.terminalSize()
	return width
}

func (l *liveTable) show(out *bytes.Buffer, _, now Snapshot) {
	drawn := ""
	if len(now.Pods) > 0 {
		drawn = frame(now, l)
	}
	if drawn == l.drawn {
		return
	}
	l.erase(out)
	l.drawn = drawn
	l.redraw(out)
}

// erase moves the cursor to the first line of the frame and clears the terminal from there on.
func (l *liveTable) erase(out *bytes.Buffer) {
	if lines := strings.Count(l.drawn, "\n"); lines > 0 {
		out.WriteString(text.CursorUp.Sprintn(lines) + "\r\x1b[J")
	}
}

func (l *liveTable) redraw(out *bytes.Buffer) { out.WriteString(l.drawn) }

// frame returns all that is drawn for a snapshot: a headline and the table. It fits on the terminal,
// because erase can only reach what is visible. If there is not enough space, it leaves out pods: first those that
// are gone, then those that run.
func frame(s Snapshot, l *liveTable) string {
	const others = 6 // lines besides the pods: headline, header, how many are left out, blanks, cursor
	width, height := l.terminalSize()
	pods := slices.Clone(s.Pods)
	if most := max(height-others, 1); len(pods) > most {
		rank := func(p Pod) int { return slices.Index([]State{Ending, Running, Gone}, p.State) }
		slices.SortStableFunc(pods, func(a, b Pod) int { return cmp.Compare(rank(a), rank(b)) })
		pods = pods[:most]
	}
	rows := make([]table.Row, 0, len(pods)+1)
	rows = append(rows, table.Row{"pod", "bucket", "left", "doing now"})
	for _, p := range pods {
		left := ""
		if p.State == Ending {
			left = durationText(p.Deadline.Sub(s.Now))
		}
		rows = append(rows, table.Row{p.Name, bucketName(p.Bucket), left, colourOf(p).Sprint(p.Doing(!s.Began.IsZero()))})
	}
	snip := func(cell string, width int) string { return text.Snip(cell, width, "…") }
	lines := strings.Split(progress(s)+"\n\n"+renderTable(rows, width, snip), "\n")
	if hidden := len(s.Pods) - len(pods); hidden > 0 {
		lines = append(lines, fmt.Sprintf(" … and %d more", hidden))
	}
	for i := range lines {
		lines[i] = snip(lines[i], width-1)
	}
	return strings.Join(lines, "\n") + "\n"
}

// colourOf returns the colour of a pod's line: red for a problem or a kill, yellow for a pod that is
// ending, green for one that has stopped in time.
func colourOf(p Pod) text.Colors {
	switch {
	case p.Problem != "" || p.State == Gone && endedBadly(p.outcome()):
		return text.Colors{text.FgRed}
	case p.State == Gone:
		return text.Colors{text.FgGreen}
	case p.State == Ending:
		return text.Colors{text.FgYellow}
	}
	return text.Colors{text.Faint}
}

// durationText returns a duration in tenths of a second, or in whole seconds if it is
// longer than a minute.
func durationText(d time.Duration) string {
	if d <= time.Minute {
		return fmt.Sprintf("%.1f s", max(d, 0).Seconds())
	}
	return d.Round(time.Second).String()
}
