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

// nameShare is how much of the width the first column may take where that is scarce.
const nameShare = 2.0 / 5

// render makes a table of rows of text, the first of which is its head; it has no
// frame, and so reads as well in a journal. The columns in right, from 1, are
// aligned to the right. With a width, the last column gets what the others leave of
// it, and fit makes its cells fit. Where that is too little, the first column is made
// to fit as well, by fitName, and then columns of scarce, from 1, are left out, the
// first of them first.
func render(rows []table.Row, width int, fit, fitName table.WidthEnforcer, scarce []int, right ...int) string {
	name, room := spread(rows, width)
	for room < narrowest && width > 0 && len(scarce) > 0 {
		rows = without(rows, scarce[0])
		right = shifted(right, scarce[0])
		scarce = shifted(scarce[1:], scarce[0])
		name, room = spread(rows, width)
	}
	style := table.StyleDefault
	style.Options.DrawBorder = false
	style.Options.SeparateColumns = false
	t := table.NewWriter()
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	t.AppendHeader(rows[0])
	t.AppendRows(rows[1:])
	var configs []table.ColumnConfig
	for _, column := range right {
		configs = append(configs, table.ColumnConfig{Number: column, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	if width > 0 {
		configs = append(configs,
			table.ColumnConfig{Number: 1, WidthMax: name, WidthMaxEnforcer: fitName},
			table.ColumnConfig{Number: len(rows[0]), WidthMax: max(room, narrowest), WidthMaxEnforcer: fit})
	}
	t.SetColumnConfigs(configs)
	return t.Render()
}

// spread gives the width of the first column, and what is left for the last.
func spread(rows []table.Row, width int) (name, room int) {
	last := len(rows[0])
	room = width - 1 - last*cellPadding
	for column := 2; column < last; column++ {
		room -= widest(rows, column)
	}
	name = widest(rows, 1)
	if room-name < narrowest {
		name = min(name, max(int(float64(width)*nameShare), narrowest))
	}
	return name, room - name
}

// without leaves out a column, from 1.
func without(rows []table.Row, column int) []table.Row {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i] = slices.Delete(slices.Clone(rows[i]), column-1, column)
	}
	return rows
}

// shifted are the numbers of columns once one is left out.
func shifted(columns []int, left int) []int {
	var moved []int
	for _, column := range columns {
		switch {
		case column < left:
			moved = append(moved, column)
		case column > left:
			moved = append(moved, column-1)
		}
	}
	return moved
}

// snipMiddle keeps the beginning and the end of a name: the pods of one owner differ at
// the end.
func snipMiddle(name string, width int) string {
	runes := []rune(name)
	if len(runes) <= width || width < 2 {
		return name
	}
	end := (width - 1) / 2
	return string(runes[:width-1-end]) + "…" + string(runes[len(runes)-end:])
}

// widest is the width of a column, from 1.
func widest(rows []table.Row, column int) int {
	width := 0
	for _, row := range rows {
		width = max(width, text.StringWidthWithoutEscSequences(row[column-1].(string)))
	}
	return width
}
