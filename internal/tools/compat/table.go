package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// row is what became of one minor.
type row struct {
	kubernetes string // the version of its libraries
	goVersion  string
	what       string
	err        error // nil: all went well
	took       time.Duration
}

// result is one word or a few: the output of what has failed is printed elsewhere.
func (r row) result() string {
	if r.err != nil {
		return "FAILED"
	}
	return "ok"
}

// printTable prints rows as a table that is aligned in a terminal, and is one in
// Markdown as well. Without rows it prints nothing.
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
