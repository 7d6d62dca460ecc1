package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// results has the measurements of one tree.
type results struct {
	cpu     string
	names   []string                                   // of the rows, in the order of their first measurement
	values  map[string]map[string]map[string][]float64 // by row, way and unit
	skipped map[string]string                          // the reasons, by benchmark
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

// add adds one measurement.
func (r *results) add(pkg string, record *benchfmt.Result) {
	name, way := rowAndWay(pkg, record.Name)
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
			continue // the benchmark reports another unit instead: ReportMetric(0, "ns/op")
		}
		units[value.Unit] = append(units[value.Unit], value.Value)
	}
}

// rowAndWay returns the row and the way of a benchmark from its name; way is "" if the name has
// none.
func rowAndWay(pkg string, name benchfmt.Name) (row, way string) {
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

// ways returns the ways of a row in alphabetical order.
func (r *results) ways(row string) []string { return slices.Sorted(maps.Keys(r.values[row])) }

// sample returns the measurements of a row and a way whose unit has the prefix timeUnit or
// memoryUnit, and that unit. A unit that the benchmark reports, such as B/pod, takes precedence
// over that of package testing (B/op).
func (r *results) sample(row, way, prefix string) (values []float64, unit string) {
	for _, u := range slices.Sorted(maps.Keys(r.values[row][way])) {
		if strings.HasPrefix(u, prefix) && (unit == "" || unit == prefix+"op") {
			values, unit = r.values[row][way][u], u
		}
	}
	return values, unit
}
