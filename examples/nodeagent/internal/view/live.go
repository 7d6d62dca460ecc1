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

func (l *live) show(out *bytes.Buffer, _, now Snapshot) {
	drawn := ""
	if len(now.Pods) > 0 {
		width, height, err := l.size()
		if err != nil || width <= 0 || height <= 0 {
			width, height = usualWidth, usualHeight
		}
		drawn = frame(now, width, height)
	}
	if drawn == l.drawn {
		return
	}
	l.wipe(out)
	l.drawn = drawn
	l.restore(out)
}

// wipe goes back to where the frame began and clears what is below.
func (l *live) wipe(out *bytes.Buffer) {
	if l.drawn == "" {
		return
	}
	out.WriteString(text.CursorUp.Sprintn(strings.Count(l.drawn, "\n")))
	out.WriteString("\r\x1b[J")
}

func (l *live) restore(out *bytes.Buffer) { out.WriteString(l.drawn) }

// frame is all that is drawn for a snapshot. No line is wider than the terminal
// and all of it fits on it, or else it could not be wiped.
func frame(s Snapshot, width, height int) string {
	above, below := []string{progress(s), ""}, []string{""}
	for _, line := range wrapped(legend, width-1) {
		below = append(below, text.Faint.Sprint(line))
	}
	const header, more, cursor = 2, 1, 1 // lines that stand there besides
	room := height - len(above) - len(below) - header - more - cursor
	if room < 1 { // then without the legend
		room, below = height-len(above)-header-more-cursor, nil
	}
	pods, hidden := mostUrgent(s.Pods, max(room, 1))
	all := append(above, strings.Split(podTable(s, pods), "\n")...)
	if hidden > 0 {
		all = append(all, fmt.Sprintf(" … and %d more", hidden))
	}
	var b strings.Builder
	for _, line := range append(all, below...) {
		b.WriteString(text.Trim(line, width-1) + "\n")
	}
	return b.String()
}

// podTable is a line for each of the pods and what it is doing.
func podTable(s Snapshot, pods []Pod) string {
	t := table.NewWriter()
	t.SetStyle(plainStyle())
	t.SetColumnConfigs(numbers(2, 3))
	t.AppendHeader(table.Row{"pod", "priority", "bucket", "doing now", "time left"})
	for _, p := range pods {
		t.AppendRow(table.Row{p.Name, p.Priority, bucketName(p.Bucket), colour(p).Sprint(p.doing(!s.Began.IsZero())), timeLeft(p, s.Now)})
	}
	return t.Render()
}

// mostUrgent picks the pods that are shown where not all can be: those that are
// ending first, then those that wait, then those that are gone. It keeps their
// order.
func mostUrgent(pods []Pod, room int) (shown []Pod, hidden int) {
	if len(pods) <= room {
		return pods, 0
	}
	rank := func(p Pod) int {
		return slices.Index([]State{Ending, Starting, Running, NotStarted, Finished, Gone}, p.State)
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

// timeLeft is a number and a bar for a pod that is ending.
func timeLeft(p Pod, now time.Time) string {
	if p.State != Ending {
		return ""
	}
	const cells = 10
	left := max(p.Deadline.Sub(now), 0)
	granted := max(time.Duration(p.Granted)*time.Second, time.Second)
	full := min(int((min(left, granted)*cells+granted-1)/granted), cells)
	return fmt.Sprintf("%6s %s%s", span(left), strings.Repeat("█", full), strings.Repeat("░", cells-full))
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
