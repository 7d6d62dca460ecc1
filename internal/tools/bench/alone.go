package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// The two ways that are compared.
const (
	plainWay = "plain"
	ourWay   = "kubegrace"
)

// aloneReasons returns why a benchmark is not compared with a plain way. The keys are a row, a
// space and a way. A row that ends in "/" stands for all rows that begin with it.
func aloneReasons() map[string]string {
	const floor = "goroutines that only wait: the least that any way can take"
	return map[string]string{
		"lifecycle.SleepingHookMemory floor":   floor,
		"lifecycle.CancelSleepingHooks/ floor": floor,
		"validation/featuregates.Admit again":  "gates resolved anew for each pod, which the package advises against",
	}
}

// reasonFor returns the reason of [aloneReasons] for a way of a row; "" if there is none.
func reasonFor(row, way string) string {
	base, _, hasParameters := strings.Cut(row[strings.LastIndex(row, "."):], "/")
	if hasParameters {
		row = row[:strings.LastIndex(row, ".")] + base + "/"
	}
	return aloneReasons()[row+" "+way]
}

// printAlone prints the measurements that have no plain way beside them, each with its reason.
// It returns those that have no reason.
func printAlone(w io.Writer, r *results) (unexplained []string, err error) {
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	rows := 0
	for _, row := range r.names {
		for _, way := range r.ways(row) {
			if way == plainWay || way == ourWay && slices.Contains(r.ways(row), plainWay) {
				continue
			}
			reason := reasonFor(row, way)
			if reason == "" {
				unexplained = append(unexplained, strings.TrimSpace(row+" "+way))
			}
			if rows++; rows == 1 {
				fmt.Fprintln(w, "\nNot compared:")
				fmt.Fprintln(w)
				fmt.Fprintln(table, "| benchmark\t| takes\t| memory\t| what it is\t|")
				fmt.Fprintln(table, "|---\t|---\t|---\t|---\t|")
			}
			fmt.Fprintf(table, "| %s\t| %s\t| %s\t| %s\t|\n", strings.TrimSpace(row+" "+way), single(r, row, way, timeUnit), single(r, row, way, memoryUnit), reason)
		}
	}
	if err := table.Flush(); err != nil {
		return nil, fmt.Errorf("failed to print the table: %w", err)
	}
	return unexplained, nil
}

// single returns the cell of one way of a row; "" if that was not measured.
func single(r *results, row, way, prefix string) string {
	values, unit := r.sample(row, way, prefix)
	if len(values) == 0 {
		return ""
	}
	return cell(values, unit)
}
