package output

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
)

const (
	// fullTableWidth is the width from which on a table of pods has all columns.
	fullTableWidth = 70
	// minName is the least width to which a name is shortened.
	minName = 15
	// columnGap is the number of spaces between two columns.
	columnGap = 2
)

// podTable returns a table of pods. On a narrow screen the columns PRIORITY and START are left out.
func (t *terminal) podTable(pods []nodeplan.Pod) string {
	rows := make([][]string, 1, 1+len(pods))
	rows[0] = []string{"POD", "PRIORITY", "ASKS", "GETS", "START", "END"}
	for i := range pods {
		pod := &pods[i]
		gets := duration.Seconds(pod.GrantedSeconds)
		if pod.CutShort {
			gets = "!" + gets
		}
		rows = append(rows, []string{pod.FullName(), priorityText(pod), duration.Seconds(pod.OwnSeconds), gets, duration.Seconds(pod.LatestStartSeconds), duration.Seconds(pod.LatestEndSeconds)})
	}
	if t.width < fullTableWidth {
		for i, row := range rows {
			rows[i] = []string{row[0], row[2], row[3], row[5]}
		}
	}
	return t.table(rows)
}

// table formats a table. The first row is the header. The first column has names, which are shortened to the
// width that the other columns leave. The other columns are right-aligned, except the column OUTCOME, which
// has words.
func (t *terminal) table(rows [][]string) string {
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", strings.Repeat(" ", columnGap)
	w := table.NewWriter()
	w.SetStyle(style)
	w.SuppressTrailingSpaces()
	nameWidth := t.width
	var configs []table.ColumnConfig
	for column := 1; column < len(rows[0]); column++ {
		width := 0
		for _, row := range rows {
			width = max(width, len(row[column]))
		}
		nameWidth -= width + columnGap
		align := text.AlignRight
		if rows[0][column] == "OUTCOME" {
			align = text.AlignLeft
		}
		configs = append(configs, table.ColumnConfig{Number: column + 1, Align: align, AlignHeader: align})
	}
	w.SetColumnConfigs(configs)
	for i, row := range rows {
		cells := table.Row{shortened(clean(row[0]), max(nameWidth, minName))}
		for _, cell := range row[1:] {
			cells = append(cells, cell)
		}
		if i == 0 {
			w.AppendHeader(cells)
		} else {
			w.AppendRow(cells)
		}
	}
	return w.Render() + "\n"
}

// shortened shortens a name to a width. It cuts in the middle, because the names of a workload's pods differ
// only at their end.
func shortened(name string, width int) string {
	if len(name) <= width {
		return name
	}
	tail := (width - 1) / 2
	return name[:width-1-tail] + "…" + name[len(name)-tail:]
}
