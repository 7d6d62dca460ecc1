package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchunit"
)

// The two kinds of measurements, by the beginning of their units.
const (
	timeUnit   = "sec/"
	memoryUnit = "B/"
)

// confidence is that of the intervals.
const confidence = 0.95

// side is one of the two columns that are compared.
type side struct {
	title string
	of    *results
	way   string
}

// printTable prints the rows that both sides have, as a table that is aligned in a terminal
// and is one in Markdown as well. rows are those of the right side.
func printTable(w io.Writer, left, right side) error {
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintf(table, "| benchmark\t| %s\t| %s\t| ratio\t| %s, memory\t| %s, memory\t| ratio\t|\n", left.title, right.title, left.title, right.title)
	fmt.Fprintln(table, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, row := range right.of.names {
		if !left.has(row) || !right.has(row) {
			continue
		}
		fmt.Fprintf(table, "| %s\t%s%s|\n", row, compared(left, right, row, timeUnit), compared(left, right, row, memoryUnit))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("failed to print the table: %w", err)
	}
	return nil
}

// has tells whether a side has measurements of a row.
func (s side) has(row string) bool { return len(s.of.values[row][s.way]) > 0 }

// compared gives three cells: both medians and their ratio.
func compared(left, right side, row, prefix string) string {
	before, unit := left.of.sample(row, left.way, prefix)
	after, afterUnit := right.of.sample(row, right.way, prefix)
	if len(before) == 0 || len(after) == 0 || unit != afterUnit {
		return "| \t| \t| \t"
	}
	return fmt.Sprintf("| %s\t| %s\t| %s\t", cell(before, unit), cell(after, unit), ratio(before, after))
}

// cell is a median and how far the values are from it: "1.234ms ±3%/pod".
func cell(values []float64, unit string) string {
	summary := benchmath.AssumeNothing.Summary(sampleOf(values), confidence)
	text := scaled(summary.Center, unit)
	if spread := summary.PctRangeString(); spread != "∞" && spread != "0%" && summary.Center != 0 {
		text += " ±" + spread
	}
	return text
}

// scaled is a value with its unit; that it is one of an operation goes without saying.
func scaled(value float64, unit string) string {
	of, per, _ := strings.Cut(unit, "/")
	var text string
	switch {
	case of == "sec":
		text = benchunit.Scale(value, benchunit.Decimal) + "s"
	case value < 1024:
		text = fmt.Sprintf("%.0f%s", value, of)
	default:
		text = benchunit.Scale(value, benchunit.ClassOf(unit)) + of
	}
	if per != "op" {
		text += "/" + per
	}
	return text
}

func sampleOf(values []float64) *benchmath.Sample {
	return benchmath.NewSample(values, &benchmath.DefaultThresholds)
}

// ratio is how many times the first median the second one is; "": there is nothing to divide.
func ratio(before, after []float64) string {
	first, second := sampleOf(before), sampleOf(after)
	a, b := median(before), median(after)
	switch {
	case a == 0 && b == 0:
		return ""
	case a == 0:
		return "∞"
	case a == b:
		return "1.00"
	}
	text := fmt.Sprintf("%.2f", b/a)
	if b/a >= 100 {
		text = fmt.Sprintf("%.0f", b/a)
	}
	if c := benchmath.AssumeNothing.Compare(first, second); c.P > c.Alpha {
		text = "~ " + text
	}
	return text
}

func median(values []float64) float64 {
	return benchmath.AssumeNothing.Summary(sampleOf(values), confidence).Center
}
