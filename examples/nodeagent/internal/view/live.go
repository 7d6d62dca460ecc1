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

// live redraws one table in place, on a terminal.
type live struct {
	size  func() (width, height int, err error)
	drawn string // what stands on the terminal now, below the cursor's line
}

// Where the terminal does not tell its size.
const (
	usualWidth  = 80
	usualHeight = 24
)

// bounds are how wide and high the terminal is.
func (l *live) bounds() (width, height int) {
	width, height, err := l.size()
	if err != nil || width <= 0 || height <= 0 {
		return usualWidth, usualHeight
	}
	return width, height
}

// width is that of the terminal.
func (l *live) width() int {
	width, _ := l.bounds()
	return width
}

func (l *live) show(out *bytes.Buffer, _, now Snapshot) {
	drawn := ""
	if len(now.Pods) > 0 {
		width, height := l.bounds()
		drawn = frame(now, width, height)
	}
	if drawn == l.drawn {
		return
	}
	l.wipe(out)
	l.drawn = drawn
	l.restore(out)
}

// wipe goes back to where the frame began and clears what is below. A terminal that has
// become narrower since has broken its lines.
func (l *live) wipe(out *bytes.Buffer) {
	if l.drawn == "" {
		return
	}
	width, height := l.bounds()
	lines := 0
	for line := range strings.Lines(l.drawn) {
		lines += 1 + max(text.StringWidthWithoutEscSequences(strings.TrimSuffix(line, "\n"))-1, 0)/width
	}
	if up := min(lines, height-1); up > 0 {
		out.WriteString(text.CursorUp.Sprintn(up))
	}
	out.WriteString("\r\x1b[J")
}

func (l *live) restore(out *bytes.Buffer) { out.WriteString(l.drawn) }

// frame is all that is drawn for a snapshot. No line is wider than the terminal
// and all of it fits on it, or else it could not be wiped.
func frame(s Snapshot, width, height int) string {
	explained := strings.Split(wrapped(legend, width-1), "\n")
	const headline, header, more, blanks, cursor = 1, 2, 1, 2, 1 // lines that stand there besides
	room := height - headline - header - more - blanks - cursor - len(explained)
	if room < 1 { // then without the legend
		room, explained = room+len(explained), nil
	}
	pods, hidden := mostUrgent(s.Pods, max(room, 1))
	lines := strings.Split(progress(s)+"\n\n"+podTable(s, pods, width), "\n")
	if hidden > 0 {
		lines = append(lines, fmt.Sprintf(" … and %d more", hidden))
	}
	if len(explained) > 0 {
		lines = append(lines, "")
	}
	for _, line := range explained {
		lines = append(lines, text.Faint.Sprint(line))
	}
	for i := range lines {
		lines[i] = snip(lines[i], width-1)
	}
	return strings.Join(lines, "\n") + "\n"
}

// barWidth is how wide a terminal must be for a bar beside the seconds.
const barWidth = 100

// podTable is a line for each of the pods and what it is doing. Where the terminal
// is too narrow, what a pod is doing is cut.
func podTable(s Snapshot, pods []Pod, width int) string {
	rows := make([]table.Row, 0, len(pods)+1)
	rows = append(rows, table.Row{"pod", "bucket", "left", "doing now"})
	for _, p := range pods {
		doing := colour(p).Sprint(p.Doing(!s.Began.IsZero()))
		rows = append(rows, table.Row{p.Name, bucketName(p.Bucket), timeLeft(p, s.Now, width >= barWidth), doing})
	}
	return render(rows, width, snip, snipMiddle, []int{2, 3}, 2)
}

func snip(cell string, width int) string { return text.Snip(cell, width, "…") }

// mostUrgent picks the pods that are shown where not all can be: those that are
// ending first, then those that wait, then those that are gone. It keeps their
// order.
func mostUrgent(pods []Pod, room int) (shown []Pod, hidden int) {
	if len(pods) <= room {
		return pods, 0
	}
	rank := func(p Pod) int {
		return slices.Index([]State{Ending, Starting, Waiting, Running, NotStarted, Finished, Stopped, Gone}, p.State)
	}
	order := make([]int, len(pods))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank(pods[a]), rank(pods[b])) })
	order = order[:room]
	slices.Sort(order)
	for _, i := range order {
		shown = append(shown, pods[i])
	}
	return shown, len(pods) - room
}

// barCells is how long a bar is.
const barCells = 10

// timeLeft is a number, and a bar if there is room, for a pod that is ending.
func timeLeft(p Pod, now time.Time, bar bool) string {
	if p.State != Ending {
		return ""
	}
	left := max(p.Deadline.Sub(now), 0)
	number := fmt.Sprintf("%6s", span(left))
	if !bar {
		return number
	}
	granted := max(time.Duration(p.Granted)*time.Second, time.Second)
	full := min(int((min(left, granted)*barCells+granted-1)/granted), barCells)
	return number + " " + strings.Repeat("█", full) + strings.Repeat("░", barCells-full)
}

// colour draws the eye to what needs it.
func colour(p Pod) text.Colors {
	switch {
	case p.Problem != "" || p.State == Gone && killed(p.outcome()):
		return text.Colors{text.FgRed}
	case p.State == Gone:
		return text.Colors{text.FgGreen}
	case p.State == Ending || p.State == Starting:
		return text.Colors{text.FgYellow}
	}
	return text.Colors{text.Faint}
}
