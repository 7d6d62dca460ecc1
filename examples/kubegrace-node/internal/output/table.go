package output

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
)

const (
	// fullTableWidth is the width of the narrowest screen for which a table has all columns.
	fullTableWidth = 70
	// columnGap is the number of spaces between two columns.
	columnGap = 2
)

// table writes a table of pods for each bucket of a node.
func (t *terminalWriter) table(b *strings.Builder, n nodeplan.Node) {
	for _, bucket := range n.Buckets {
		b.WriteByte('\n')
		t.paragraph(b, bucketLine(bucket))
		if len(bucket.Pods) > 0 {
			b.WriteString(t.podTable(bucket.Pods))
		}
	}
	b.WriteByte('\n')
	t.paragraph(b, "START and END are at the latest, counted from the announcement: a pod is told to stop as soon as all before it have ended.")
}

// bucketLine returns the line above the pods of a bucket.
func bucketLine(b nodeplan.Bucket) string {
	line := fmt.Sprintf("Bucket %d, ", b.Priority)
	if b.Seconds < b.ConfiguredSeconds {
		line += fmt.Sprintf("%d s of its %d s", b.Seconds, b.ConfiguredSeconds)
	} else {
		line += fmt.Sprintf("%d s", b.Seconds)
	}
	switch {
	case len(b.Pods) == 0:
		return line + ": no pods, it is skipped."
	case b.Seconds == 0:
		return line + ", killed at once: " + countText(len(b.Pods), "pod") + "."
	default:
		return line + ", over after " + secondsText(b.EndSeconds) + " at the latest: " + countText(len(b.Pods), "pod") + "."
	}
}

// podTable returns a table of pods.
func (t *terminalWriter) podTable(pods []nodeplan.Pod) string {
	rows := make([]table.Row, 1, 1+len(pods))
	rows[0] = table.Row{"POD", "PRIORITY", "ASKS", "GETS", "START", "END"}
	if t.screen.Width < fullTableWidth {
		rows[0] = table.Row{"POD", "ASKS", "GETS", "END"}
	}
	for i := range pods {
		pod := &pods[i]
		gets := secondsCell(float64(pod.GrantedSeconds))
		if pod.CutShort {
			gets = t.colored(text.FgRed, "!"+gets)
		}
		row := table.Row{clean(pod.FullName()), strconv.Itoa(int(pod.Priority)), secondsCell(float64(pod.OwnSeconds)), gets, secondsCell(pod.LatestStartSeconds), secondsCell(pod.LatestEndSeconds)}
		if t.screen.Width < fullTableWidth {
			row = table.Row{row[0], row[2], row[3], row[5]}
		}
		rows = append(rows, row)
	}
	return t.render(rows)
}

// shownLosses is how many rows of each kind of group, and of nodes, the table of losses has.
const shownLosses = 4

// losses writes a table of what loses most, from the workloads to the nodes.
func (t *terminalWriter) losses(b *strings.Builder, s nodeplan.Summary) {
	if len(s.Losses) == 0 {
		return
	}
	b.WriteString("\nWhere to begin:\n")
	rows := []table.Row{{"LOSES MOST", "PODS", "CUT", "LOST"}}
	add := func(by, name string, pods, cut int, lost int64) {
		rows = append(rows, table.Row{by + " " + clean(name), strconv.Itoa(pods), strconv.Itoa(cut), secondsCell(float64(lost))})
	}
	shown := map[string]int{}
	for _, loss := range s.Losses {
		if shown[loss.By]++; shown[loss.By] <= shownLosses {
			add(loss.By, loss.Name, loss.PodCount, loss.CutShort, loss.LostSeconds)
		}
	}
	for _, n := range s.WorstNodes[:min(len(s.WorstNodes), shownLosses)] {
		add("node", n.Name, n.PodCount, n.CutShort, n.LostSeconds)
	}
	b.WriteString(t.render(rows))
}

// render formats a table, whose first row is the header. The first column has names, which are
// shortened to the width that the other columns leave; the other columns are right-aligned.
func (t *terminalWriter) render(rows []table.Row) string {
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", strings.Repeat(" ", columnGap)
	w := table.NewWriter()
	w.SetStyle(style)
	w.SuppressTrailingSpaces()
	nameWidth := t.screen.Width
	configs := make([]table.ColumnConfig, 0, len(rows[0]))
	for column := 1; column < len(rows[0]); column++ {
		nameWidth -= columnWidth(rows, column) + columnGap
		configs = append(configs, table.ColumnConfig{Number: column + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	for _, row := range rows {
		row[0] = t.screen.shortened(row[0].(string), nameWidth)
	}
	w.SetColumnConfigs(configs)
	w.AppendHeader(rows[0])
	w.AppendRows(rows[1:])
	return w.Render() + "\n"
}

// columnWidth returns the width of the widest cell of a column.
func columnWidth(rows []table.Row, column int) int {
	width := 0
	for _, row := range rows {
		width = max(width, text.StringWidthWithoutEscSequences(row[column].(string)))
	}
	return width
}
