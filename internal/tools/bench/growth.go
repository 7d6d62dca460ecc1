package main

import (
	"fmt"
	"io"
	"strings"
)

// The cost of a drain must grow in proportion to the number of pods: five times as many pods
// may take six times as long.
const (
	fewPods  = "/pods=10000"
	manyPods = "/pods=50000"
	mostGrow = 6.0
)

// printGrowth prints how many times as long five times as many pods take. It returns the rows in
// which kubegrace takes too long.
func printGrowth(w io.Writer, r *results) (tooMuch []string) {
	rows := 0
	for _, row := range r.names {
		if !strings.Contains(row, manyPods) {
			continue
		}
		ours, measured := growth(r, row, ourWay)
		if !measured {
			continue
		}
		name := strings.Replace(row, manyPods, "", 1)
		text := fmt.Sprintf("50,000 pods take %.1f times as long as 10,000 in %s; at most %g are allowed", ours, name, mostGrow)
		if plain, measured := growth(r, row, plainWay); measured {
			text += fmt.Sprintf(" (plain: %.1f)", plain)
		}
		if rows++; rows == 1 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, text+".")
		if ours > mostGrow {
			tooMuch = append(tooMuch, name)
		}
	}
	return tooMuch
}

// growth returns how many times as long as its smaller row a larger row takes, and false if one of
// them was not measured. It compares medians and not the fastest rounds: on a busy machine a short
// run may find a quiet moment, and a long one does not.
func growth(r *results, larger, way string) (float64, bool) {
	many, unit := r.sample(larger, way, timeUnit)
	few, fewUnit := r.sample(strings.Replace(larger, manyPods, fewPods, 1), way, timeUnit)
	if len(many) == 0 || len(few) == 0 || unit != fewUnit {
		return 0, false
	}
	return median(many) / median(few), true
}
