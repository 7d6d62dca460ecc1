package output

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/nodeplan"
)

const (
	// narrow is the width of a screen below which columns are left out.
	narrow = 70
	// gap is what a table has between two columns.
	gap = 2
)

// table shows the buckets of a node in their order.
func (p *people) table(b *strings.Builder, n nodeplan.Node) {
	for _, bucket := range n.Buckets {
		b.WriteByte('\n')
		p.paragraph(b, bucketLine(bucket))
		if len(bucket.Pods) > 0 {
			b.WriteString(p.pods(bucket.Pods))
		}
	}
	b.WriteByte('\n')
	p.paragraph(b, "START and END are at the latest, counted from the announcement: a pod is told to stop as soon as all before it have ended.")
}

// bucketLine says what a bucket has.
func bucketLine(b nodeplan.Bucket) string {
	said := fmt.Sprintf("Bucket %d, ", b.Priority)
	if b.Seconds < b.ConfiguredSeconds {
		said += fmt.Sprintf("%d s of its %d s", b.Seconds, b.ConfiguredSeconds)
	} else {
		said += fmt.Sprintf("%d s", b.Seconds)
	}
	switch {
	case len(b.Pods) == 0:
		return said + ": no pods, it is skipped."
	case b.Seconds == 0:
		return said + ", killed at once: " + count(len(b.Pods), "pod") + "."
	default:
		return said + ", over after " + seconds(b.EndSeconds) + " at the latest: " + count(len(b.Pods), "pod") + "."
	}
}

// pods is a table of pods.
func (p *people) pods(pods []nodeplan.Pod) string {
	rows := make([]table.Row, 1, 1+len(pods))
	rows[0] = table.Row{"POD", "PRIORITY", "ASKS", "GETS", "START", "END"}
	if p.screen.Width < narrow {
		rows[0] = table.Row{"POD", "ASKS", "GETS", "END"}
	}
	for i := range pods {
		pod := &pods[i]
		gets := cell(float64(pod.GrantedSeconds))
		if pod.CutShort {
			gets = p.colored(text.FgRed, "!"+gets)
		}
		row := table.Row{clean(pod.FullName()), strconv.Itoa(int(pod.Priority)), cell(float64(pod.OwnSeconds)), gets, cell(pod.LatestStartSeconds), cell(pod.LatestEndSeconds)}
		if p.screen.Width < narrow {
			row = table.Row{row[0], row[2], row[3], row[5]}
		}
		rows = append(rows, row)
	}
	return p.render(rows)
}

// worst is a table of the nodes that lose most.
func (p *people) worst(b *strings.Builder, s nodeplan.Summary) {
	if len(s.WorstNodes) == 0 {
		return
	}
	b.WriteString("\nThe nodes that lose most:\n")
	rows := []table.Row{{"NODE", "PODS", "CUT", "LOST"}}
	for _, n := range s.WorstNodes {
		rows = append(rows, table.Row{clean(n.Name), strconv.Itoa(n.PodCount), strconv.Itoa(n.CutShort), cell(float64(n.LostSeconds))})
	}
	b.WriteString(p.render(rows))
}

// render makes a table of rows, the first of which is its head. The first column is
// names and gets what the others leave of the screen; they are aligned to the right.
func (p *people) render(rows []table.Row) string {
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", strings.Repeat(" ", gap)
	t := table.NewWriter()
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	room := p.screen.Width
	configs := make([]table.ColumnConfig, 0, len(rows[0]))
	for column := 1; column < len(rows[0]); column++ {
		room -= widest(rows, column) + gap
		configs = append(configs, table.ColumnConfig{Number: column + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	for _, row := range rows {
		row[0] = p.screen.snip(row[0].(string), room)
	}
	t.SetColumnConfigs(configs)
	t.AppendHeader(rows[0])
	t.AppendRows(rows[1:])
	return t.Render() + "\n"
}

// widest is the width of a column.
func widest(rows []table.Row, column int) int {
	width := 0
	for _, row := range rows {
		width = max(width, text.StringWidthWithoutEscSequences(row[column].(string)))
	}
	return width
}
