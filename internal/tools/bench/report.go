package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"
)

// describe returns a line with the machine and the options of a run.
func (o options) describe(cpu string, took time.Duration) string {
	return fmt.Sprintf("%s, %s/%s, %s with %d cores; %d rounds of %s each, in %v.",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, cpu, runtime.NumCPU(), o.count, o.benchTime, took.Round(time.Second))
}

// report prints the tables of a run without --base. It returns an error if a benchmark has neither
// a plain way nor a reason, and if the cost grows too fast.
func report(w io.Writer, r *results, about string) error {
	fmt.Fprintln(w, about)
	fmt.Fprintln(w, "Medians, with the interval that has the true one in 95 of 100 cases. A ratio is kubegrace to")
	fmt.Fprintln(w, "plain, the same written by hand as the kubelet does it: below 1 kubegrace takes less. What is")
	fmt.Fprintln(w, "marked with ~ may be chance.")
	fmt.Fprintln(w)
	if err := printTable(w, side{plainWay, r, plainWay}, side{ourWay, r, ourWay}); err != nil {
		return err
	}
	unexplained, err := printAlone(w, r)
	if err != nil {
		return err
	}
	printSkipped(w, r)
	tooMuch := printGrowth(w, r)
	if len(unexplained) > 0 {
		err = fmt.Errorf("neither a plain way nor a reason in alone.go: %s", strings.Join(unexplained, ", "))
	}
	if len(tooMuch) > 0 {
		err = errors.Join(err, fmt.Errorf("cost grows faster than the pods: %s", strings.Join(tooMuch, ", ")))
	}
	return err
}

// printSkipped prints the benchmarks that this machine could not run, with the reasons.
func printSkipped(w io.Writer, r *results) {
	for _, name := range slices.Sorted(maps.Keys(r.skipped)) {
		fmt.Fprintf(w, "\nSkipped: %s %s\n", name, r.skipped[name])
	}
}
