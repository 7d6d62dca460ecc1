package output

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
)

// podTable returns a table of pods.
func podTable(pods []nodeplan.Pod) string {
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
	return renderTable(rows)
}

// renderTable formats a table. The first row is the header. The first column has names, and a column OUTCOME has
// words; all other columns are right-aligned.
func renderTable(rows [][]string) string {
	w := table.NewWriter()
	w.SetStyle(table.Style{Options: table.OptionsNoBordersAndSeparators, Box: table.BoxStyle{PaddingRight: "  "}})
	w.SuppressTrailingSpaces()
	configs := make([]table.ColumnConfig, 0, len(rows[0]))
	for i, name := range rows[0] {
		align := text.AlignRight
		if i == 0 || name == "OUTCOME" {
			align = text.AlignLeft
		}
		configs = append(configs, table.ColumnConfig{Number: i + 1, Align: align})
	}
	w.SetColumnConfigs(configs)
	for _, row := range rows {
		cells := make(table.Row, 0, len(row))
		for _, cell := range row {
			cells = append(cells, clean(cell))
		}
		w.AppendRow(cells)
	}
	return strings.TrimSuffix(w.Render(), "\n") + "\n"
}
