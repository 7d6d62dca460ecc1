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

// confidence is the level of the confidence intervals.
const confidence = 0.95

// side is one of the two columns that are compared.
type side struct {
	title string
	of    *results
	way   string
}

// printTable prints the rows that both sides have, in the order of the right side. The table is
// Markdown whose columns are aligned.
func printTable(w io.Writer, left, right side) error {
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintf(table, "| benchmark\t| %s\t| %s\t| ratio\t| %s, memory\t| %s, memory\t| ratio\t|\n", left.title, right.title, left.title, right.title)
	fmt.Fprintln(table, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, row := range right.of.names {
		if !left.has(row) || !right.has(row) {
			continue
		}
		fmt.Fprintf(table, "| %s\t%s%s|\n", row, comparisonCells(left, right, row, timeUnit), comparisonCells(left, right, row, memoryUnit))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("failed to print the table: %w", err)
	}
	return nil
}

// has reports whether a side has measurements of a row.
func (s side) has(row string) bool { return len(s.of.values[row][s.way]) > 0 }

// comparisonCells returns three cells: both medians and their ratio.
func comparisonCells(left, right side, row, prefix string) string {
	before, unit := left.of.sample(row, left.way, prefix)
	after, afterUnit := right.of.sample(row, right.way, prefix)
	if len(before) == 0 || len(after) == 0 || unit != afterUnit {
		return "| \t| \t| \t"
	}
	return fmt.Sprintf("| %s\t| %s\t| %s\t", cell(before, unit), cell(after, unit), ratio(before, after))
}

// cell returns the median and the confidence interval: "1.234ms/pod ±3%".
func cell(values []float64, unit string) string {
	summary := benchmath.AssumeNothing.Summary(sampleOf(values), confidence)
	text := scaled(summary.Center, unit)
	if spread := summary.PctRangeString(); spread != "∞" && spread != "0%" && summary.Center != 0 {
		text += " ±" + spread
	}
	return text
}

// scaled returns a value with its unit. The suffix "/op" is left out.
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

// ratio returns the second median divided by the first one; "" if both are 0.
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
