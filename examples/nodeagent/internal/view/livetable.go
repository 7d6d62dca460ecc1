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

// liveTable draws one table on a terminal, and redraws it in place.
type liveTable struct {
	size  func() (width, height int, err error) // of the terminal
	drawn string                                // what is drawn now; the cursor is below it
}

// The size that is assumed if the terminal does not tell its size.
const (
	defaultWidth  = 80
	defaultHeight = 24
)

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
		width, height := l.terminalSize()
		drawn = frame(now, width, height)
	}
	if drawn == l.drawn {
		return
	}
	l.erase(out)
	l.drawn = drawn
	l.redraw(out)
}

// erase moves the cursor to the first line of the frame and clears the terminal from
// there on. If the terminal has become narrower, it has broken lines of the frame into
// several.
func (l *liveTable) erase(out *bytes.Buffer) {
	if l.drawn == "" {
		return
	}
	width, height := l.terminalSize()
	lines := 0
	for line := range strings.Lines(l.drawn) {
		lines += 1 + max(text.StringWidthWithoutEscSequences(strings.TrimSuffix(line, "\n"))-1, 0)/width
	}
	if up := min(lines, height-1); up > 0 {
		out.WriteString(text.CursorUp.Sprintn(up))
	}
	out.WriteString("\r\x1b[J")
}

func (l *liveTable) redraw(out *bytes.Buffer) { out.WriteString(l.drawn) }

// frame returns all that is drawn for a snapshot: a headline, the table and the legend. It
// fits on the terminal, because erase can only reach what is visible. If there is not
// enough space, it has no legend and leaves out pods.
func frame(s Snapshot, width, height int) string {
	legendLines := strings.Split(wrap(legend, width-1), "\n")
	const headline, header, more, blanks, cursor = 1, 2, 1, 2, 1 // numbers of lines besides pods and legend
	podLines := height - headline - header - more - blanks - cursor - len(legendLines)
	if podLines < 1 {
		podLines, legendLines = podLines+len(legendLines), nil
	}
	pods, hidden := mostUrgent(s.Pods, max(podLines, 1))
	lines := strings.Split(progress(s)+"\n\n"+podTable(s, pods, width), "\n")
	if hidden > 0 {
		lines = append(lines, fmt.Sprintf(" … and %d more", hidden))
	}
	if len(legendLines) > 0 {
		lines = append(lines, "")
	}
	for _, line := range legendLines {
		lines = append(lines, text.Faint.Sprint(line))
	}
	for i := range lines {
		lines[i] = snip(lines[i], width-1)
	}
	return strings.Join(lines, "\n") + "\n"
}

// minBarWidth is the minimum width of a terminal that shows a bar beside the seconds.
const minBarWidth = 100

// podTable returns a table with a line for each of the pods. On a narrow terminal the text
// of the last column, what the pod is doing, is cut.
func podTable(s Snapshot, pods []Pod, width int) string {
	rows := make([]table.Row, 0, len(pods)+1)
	rows = append(rows, table.Row{"pod", "bucket", "left", "doing now"})
	for _, p := range pods {
		doing := colourOf(p).Sprint(p.Doing(!s.Began.IsZero()))
		rows = append(rows, table.Row{p.Name, bucketName(p.Bucket), timeLeft(p, s.Now, width >= minBarWidth), doing})
	}
	return renderTable(rows, tableLayout{width: width, fitLast: snip, fitFirst: snipMiddle, optional: []int{2, 3}, right: []int{2}})
}

// snip cuts the end of a text that is wider than width.
func snip(cell string, width int) string { return text.Snip(cell, width, "…") }

// mostUrgent returns as many pods as a table has lines for, and how many it has left out.
// Pods that are ending come first, those that are gone last. The order of the pods stays.
func mostUrgent(pods []Pod, lines int) (shown []Pod, hidden int) {
	if len(pods) <= lines {
		return pods, 0
	}
	rank := func(p Pod) int {
		return slices.Index([]State{Ending, Running, Gone}, p.State)
	}
	order := make([]int, len(pods))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank(pods[a]), rank(pods[b])) })
	order = order[:lines]
	slices.Sort(order)
	for _, i := range order {
		shown = append(shown, pods[i])
	}
	return shown, len(pods) - lines
}

// barCells is the length of a bar in characters.
const barCells = 10

// timeLeft returns the time until the deadline of a pod that is ending, with a bar that
// shows which part of the granted time it is. It returns "" for any other pod.
func timeLeft(p Pod, now time.Time, bar bool) string {
	if p.State != Ending {
		return ""
	}
	left := max(p.Deadline.Sub(now), 0)
	number := fmt.Sprintf("%6s", durationText(left))
	if !bar {
		return number
	}
	granted := max(time.Duration(p.Granted)*time.Second, time.Second)
	full := min(int((min(left, granted)*barCells+granted-1)/granted), barCells)
	return number + " " + strings.Repeat("█", full) + strings.Repeat("░", barCells-full)
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
