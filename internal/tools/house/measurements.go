package main

import (
	"fmt"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// lastColumns are the last columns in the heading of a table of measurements. The last one has the
// value of ONLY with which make bench measures the row.
const lastColumns = "| plain | kubegrace | ratio | `ONLY=` |"

// checkMeasurements checks the rows in tables of measurements: the ratio is that of the two rounded
// figures, and the benchmark exists. It does not check the figures themselves: make bench measures
// them.
func checkMeasurements(repo repository) ([]string, error) {
	benchmarks, err := benchmarks(repo)
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, name := range repo.match("", "*.md") {
		content, err := repo.read(name)
		if err != nil {
			return nil, err
		}
		inTable := false
		for line := range strings.Lines(string(content)) {
			line = strings.TrimSpace(line)
			if inTable && !strings.HasPrefix(line, "|---") && strings.HasPrefix(line, "|") {
				if problem := wrongMeasurement(line, benchmarks); problem != "" {
					problems = append(problems, fmt.Sprintf("%s: %s: %s", name, line, problem))
				}
				continue
			}
			inTable = strings.HasSuffix(line, lastColumns) || inTable && strings.HasPrefix(line, "|")
		}
	}
	return problems, nil
}

// benchmarks returns the names of all benchmarks as in make bench: the folder, a dot, and the name
// without "Benchmark".
func benchmarks(repo repository) ([]string, error) {
	var names []string
	for _, name := range repo.match("", "*_test.go") {
		content, err := repo.read(name)
		if err != nil {
			return nil, err
		}
		for _, match := range regexp.MustCompile(`(?m)^func Benchmark(\w*)\(`).FindAllSubmatch(content, -1) {
			names = append(names, path.Dir(name)+"."+string(match[1]))
		}
	}
	return names, nil
}

// wrongMeasurement returns what is wrong with a row; "" if nothing is.
func wrongMeasurement(row string, benchmarks []string) string {
	cells := strings.Split(strings.Trim(row, "| "), " | ")
	if len(cells) != 5 {
		return fmt.Sprintf("has %d cells", len(cells))
	}
	only, err := regexp.Compile(strings.Trim(cells[4], "`"))
	if err != nil || !matchesOne(only, benchmarks) {
		return "there is no such benchmark"
	}
	plain, plainErr := measured(cells[1])
	ours, oursErr := measured(cells[2])
	ratio, ratioErr := measured(strings.TrimPrefix(cells[3], "~ "))
	if plainErr != nil || oursErr != nil || ratioErr != nil {
		return "has no figures"
	}
	if least, most := ours.least/plain.most, ours.most/plain.least; most < ratio.least || ratio.most < least {
		return fmt.Sprintf("the ratio of these figures is %.2f", (least+most)/2)
	}
	return ""
}

// matchesOne reports whether a pattern matches exactly one benchmark.
func matchesOne(only *regexp.Regexp, benchmarks []string) bool {
	found := 0
	for _, name := range benchmarks {
		if only.MatchString(name) {
			found++
		}
	}
	return found == 1
}

// interval has the values that round to a figure, in seconds or bytes.
type interval struct{ least, most float64 }

// measured parses a figure with or without a unit.
func measured(text string) (interval, error) {
	number, unit, _ := strings.Cut(text, " ")
	value, err := strconv.ParseFloat(number, 64)
	_, decimals, _ := strings.Cut(number, ".")
	half := math.Pow10(-len(decimals)) / 2
	scale, known := map[string]float64{
		"": 1, "ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20,
	}[unit]
	if err == nil && !known {
		err = fmt.Errorf("%q is no unit", unit)
	}
	return interval{(value - half) * scale, (value + half) * scale}, err
}
