package view

import (
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// narrowest is how narrow the last column of a table may become: words are read, not
// letters.
const narrowest = 15

// cellPadding is the space around each cell of a table.
const cellPadding = 2

// render makes a table of rows of text, the first of which is its head; it has no
// frame, and so reads as well in a journal. The columns in right, from 1, are
// aligned to the right. With a width, the last column gets what the others leave of
// it, and fit makes its cells fit.
func render(rows []table.Row, width int, fit table.WidthEnforcer, right ...int) string {
	style := table.StyleDefault
	style.Options.DrawBorder = false
	style.Options.SeparateColumns = false
	t := table.NewWriter()
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	t.AppendHeader(rows[0])
	t.AppendRows(rows[1:])

	last := len(rows[0])
	room := width - 1 - last*cellPadding
	var configs []table.ColumnConfig
	for column := 1; column < last; column++ {
		room -= widest(rows, column)
		if slices.Contains(right, column) {
			configs = append(configs, table.ColumnConfig{Number: column, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	if width > 0 {
		configs = append(configs, table.ColumnConfig{Number: last, WidthMax: max(room, narrowest), WidthMaxEnforcer: fit})
	}
	t.SetColumnConfigs(configs)
	return t.Render()
}

// widest is the width of a column, from 1.
func widest(rows []table.Row, column int) int {
	width := 0
	for _, row := range rows {
		width = max(width, text.StringWidthWithoutEscSequences(row[column-1].(string)))
	}
	return width
}
