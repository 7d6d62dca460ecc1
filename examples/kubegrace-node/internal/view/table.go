package view

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

const (
	// minColumn is the minimum width of the first and the last column, so that words stay readable.
	minColumn = 15
	// cellPadding is the space around each cell.
	cellPadding = 2
)

// renderTable returns a table without a border, which is readable in a journal too. The first row is
// the header, and each cell is a string. The columns between the first and the last are numbers. The last column is
// fitted to the width, and the first too if need be; 0 means that lines may have any width.
func renderTable(rows []table.Row, width int) string {
	style := table.StyleDefault
	style.Options.DrawBorder = false
	style.Options.SeparateColumns = false
	t := table.NewWriter()
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	t.AppendHeader(rows[0])
	t.AppendRows(rows[1:])
	columns := len(rows[0])
	var configs []table.ColumnConfig
	available := width - 1 - columns*cellPadding
	for column := 2; column < columns; column++ {
		available -= columnWidth(rows, column)
		configs = append(configs, table.ColumnConfig{Number: column, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	if width > 0 {
		first := columnWidth(rows, 1)
		if available-first < columnWidth(rows, columns) {
			first = min(first, max(available/2, minColumn))
		}
		configs = append(configs,
			table.ColumnConfig{Number: 1, WidthMax: first, WidthMaxEnforcer: text.WrapSoft},
			table.ColumnConfig{Number: columns, WidthMax: max(available-first, minColumn), WidthMaxEnforcer: text.WrapSoft})
	}
	t.SetColumnConfigs(configs)
	return t.Render()
}

// columnWidth returns the width of the widest cell of a column, which are numbered from 1.
func columnWidth(rows []table.Row, column int) int {
	width := 0
	for _, row := range rows {
		width = max(width, text.StringWidthWithoutEscSequences(row[column-1].(string)))
	}
	return width
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

// writeSentences writes sentences, each on lines of its own.
func writeSentences(out *bytes.Buffer, sentences []string, width int) {
	for _, sentence := range sentences {
		fmt.Fprintln(out, wrap(sentence, width-1))
	}
}
