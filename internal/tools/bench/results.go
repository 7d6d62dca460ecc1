package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// results are the measurements of one tree, in the order of their first appearance.
type results struct {
	cpu     string
	names   []string                                   // of the rows
	values  map[string]map[string]map[string][]float64 // row, way, unit
	skipped map[string]string                          // why, by benchmark
}

func newResults() *results {
	return &results{values: map[string]map[string]map[string][]float64{}, skipped: map[string]string{}}
}

// read adds the output of a test program.
func (r *results) read(pkg, out string) error {
	reader := benchfmt.NewReader(strings.NewReader(out), pkg)
	found := false
	for reader.Scan() {
		switch record := reader.Result().(type) {
		case *benchfmt.Result:
			found = true
			r.cpu = record.GetConfig("cpu")
			r.add(pkg, record)
		case *benchfmt.SyntaxError:
			return record
		default:
		}
	}
	if err := reader.Err(); err != nil {
		return fmt.Errorf("failed to read the results of %s: %w", pkg, err)
	}
	for name, why := range skipped(out) {
		found, r.skipped[pkg+"."+name] = true, why
	}
	if !found {
		return errors.New("no results in the output of " + pkg + ":\n" + out)
	}
	return nil
}

func (r *results) add(pkg string, record *benchfmt.Result) {
	name, way := split(pkg, record.Name)
	if _, known := r.values[name]; !known {
		r.names = append(r.names, name)
		r.values[name] = map[string]map[string][]float64{}
	}
	if _, known := r.values[name][way]; !known {
		r.values[name][way] = map[string][]float64{}
	}
	units := r.values[name][way]
	for _, value := range record.Values {
		if value.Value == 0 && value.Unit == "sec/op" {
			continue // the benchmark has said that it would say nothing
		}
		units[value.Unit] = append(units[value.Unit], value.Value)
	}
}

// split gives the row of a benchmark, and its way; "": it is not one of several.
func split(pkg string, name benchfmt.Name) (row, way string) {
	base, parts := name.Parts()
	row = pkg + "." + string(base)
	for i, part := range parts {
		key, value, _ := strings.Cut(string(part), "=")
		switch {
		case key == "/way":
			way = value
		case i == len(parts)-1 && strings.HasPrefix(key, "-"): // GOMAXPROCS
		default:
			row += string(part)
		}
	}
	return row, way
}

// ways are those of a row, in alphabetical order.
func (r *results) ways(row string) []string { return slices.Sorted(maps.Keys(r.values[row])) }

// sample are the measurements of a row and a way whose unit begins so, which is "sec/" or
// "B/", and the unit. A unit of the benchmark's own comes before that of the testing package.
func (r *results) sample(row, way, prefix string) (values []float64, unit string) {
	for _, u := range slices.Sorted(maps.Keys(r.values[row][way])) {
		if strings.HasPrefix(u, prefix) && (unit == "" || unit == prefix+"op") {
			values, unit = r.values[row][way][u], u
		}
	}
	return values, unit
}
