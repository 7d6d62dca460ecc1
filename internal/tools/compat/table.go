package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// row is the result of one minor.
type row struct {
	kubernetes string // the version of its libraries
	goVersion  string
	what       string
	err        error // nil: all tests pass
	took       time.Duration
}

// result returns the cell of the table for err, without the error: that is printed with the
// progress.
func (r row) result() string {
	if r.err != nil {
		return "FAILED"
	}
	return "ok"
}

// printTable prints rows as a Markdown table whose columns are aligned. Without rows it prints
// nothing.
func printTable(w io.Writer, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(table, "| Kubernetes\t| Go\t| what\t| result\t| time\t|")
	fmt.Fprintln(table, "|---\t|---\t|---\t|---\t|---\t|")
	for _, r := range rows {
		fmt.Fprintf(table, "| %s\t| %s\t| %s\t| %s\t| %v\t|\n", r.kubernetes, r.goVersion, r.what, r.result(), r.took.Round(time.Second))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("failed to print the table: %w", err)
	}
	return nil
}
