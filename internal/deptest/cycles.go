package deptest

import (
	"maps"
	"slices"
)

// Cycles returns the groups of declarations that use each other, directly or through others,
// from what [References] returns. Each group is sorted, and so is their list.
func Cycles(references map[string][]string) [][]string {
	reached := map[string]map[string]bool{}
	for name := range references {
		reached[name] = map[string]bool{}
		for next := references[name]; len(next) > 0; {
			to := next[0]
			next = next[1:]
			if !reached[name][to] {
				reached[name][to] = true
				next = append(slices.Clip(next), references[to]...)
			}
		}
	}
	var cycles [][]string
	grouped := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(references)) {
		if !reached[name][name] || grouped[name] {
			continue
		}
		var cycle []string
		for to := range reached[name] {
			if reached[to][name] {
				grouped[to] = true
				cycle = append(cycle, to)
			}
		}
		slices.Sort(cycle)
		cycles = append(cycles, cycle)
	}
	return cycles
}
