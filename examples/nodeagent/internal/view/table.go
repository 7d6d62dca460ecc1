package view

import (
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// tableLayout says how a table fits its width. Columns are numbered from 1.
type tableLayout struct {
	// width is the width that lines must stay below. 0 means that they may have any width.
	width int
	// fitFirst and fitLast make the cells of the first and the last column fit, by
	// wrapping or cutting their text. The other columns are as wide as their cells.
	fitFirst, fitLast table.WidthEnforcer
	// optional are the columns that may be left out, the least important first.
	optional []int
	// right are the columns that are aligned to the right.
	right []int
}

// podLayout is the layout of tables with the columns pod, priority, bucket, two columns of
// times, and one of text.
func podLayout(width int) tableLayout {
	return tableLayout{width: width, fitFirst: text.WrapHard, fitLast: text.WrapSoft, optional: []int{2, 3, 4, 5}, right: []int{2, 3, 4, 5}}
}

const (
	// minLastColumn is the minimum width of the last column, so that words stay readable.
	minLastColumn = 15
	// cellPadding is the space around each cell.
	cellPadding = 2
	// maxFirstShare is the part of the width that the first column may have if the width
	// is not enough for all columns.
	maxFirstShare = 2.0 / 5
)

// renderTable returns a table without a border, which is readable in a journal too. The
// first row is the header, and each cell is a string. If the last column would become too
// narrow, the first column is made to fit; if that is not enough, optional columns are
// left out.
func renderTable(rows []table.Row, layout tableLayout) string {
	firstWidth, lastWidth := columnWidths(rows, layout.width)
	for lastWidth < minLastColumn && layout.width > 0 && len(layout.optional) > 0 {
		column := layout.optional[0]
		rows = withoutColumn(rows, column)
		layout.right = renumber(layout.right, column)
		layout.optional = renumber(layout.optional, column)
		firstWidth, lastWidth = columnWidths(rows, layout.width)
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
	for _, column := range layout.right {
		configs = append(configs, table.ColumnConfig{Number: column, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	if layout.width > 0 {
		configs = append(configs,
			table.ColumnConfig{Number: 1, WidthMax: firstWidth, WidthMaxEnforcer: layout.fitFirst},
			table.ColumnConfig{Number: len(rows[0]), WidthMax: max(lastWidth, minLastColumn), WidthMaxEnforcer: layout.fitLast})
	}
	t.SetColumnConfigs(configs)
	return t.Render()
}

// columnWidths returns the widths of the first and of the last column. The other columns
// are as wide as their cells.
func columnWidths(rows []table.Row, width int) (first, last int) {
	columns := len(rows[0])
	available := width - 1 - columns*cellPadding
	for column := 2; column < columns; column++ {
		available -= columnWidth(rows, column)
	}
	first = columnWidth(rows, 1)
	if available-first < minLastColumn {
		first = min(first, max(int(float64(width)*maxFirstShare), minLastColumn))
	}
	return first, available - first
}

// columnWidth returns the width of the widest cell of a column.
func columnWidth(rows []table.Row, column int) int {
	width := 0
	for _, row := range rows {
		width = max(width, text.StringWidthWithoutEscSequences(row[column-1].(string)))
	}
	return width
}

// withoutColumn returns the rows without one of their columns.
func withoutColumn(rows []table.Row, column int) []table.Row {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i] = slices.Delete(slices.Clone(rows[i]), column-1, column)
	}
	return rows
}

// renumber returns the new numbers of columns after one column was removed. The removed
// column is not among them.
func renumber(columns []int, removed int) []int {
	var numbers []int
	for _, column := range columns {
		switch {
		case column < removed:
			numbers = append(numbers, column)
		case column > removed:
			numbers = append(numbers, column-1)
		}
	}
	return numbers
}

// snipMiddle cuts the middle of a name that is wider than width. Names of pods of one
// owner differ at the end.
func snipMiddle(name string, width int) string {
	runes := []rune(name)
	if len(runes) <= width || width < 2 {
		return name
	}
	end := (width - 1) / 2
	return string(runes[:width-1-end]) + "…" + string(runes[len(runes)-end:])
}

// wrap breaks a text into lines of at most width characters. If width is less than 1, it
// returns the text as it is.
func wrap(paragraph string, width int) string {
	if width < 1 {
		return paragraph
	}
	lines := strings.Split(text.WrapSoft(paragraph, width), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
