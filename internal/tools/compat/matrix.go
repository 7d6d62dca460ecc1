package main

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// The minors of the Kubernetes libraries, v0.N. When Kubernetes has a new one, raise
// newest; when go.mod does, raise floor.
const (
	// oldest is what forkModule builds and passes with. It is KubeEdge's.
	oldest = 32
	// floor is what go.mod requires: from here on everything is tested, but for modules
	// that have a later floor of their own.
	floor = 34
	// newest is the latest minor that everything is tested with.
	newest = 37
	// lastOfOldestGo is the last minor that needs no later Go than our go.mod, and is
	// tested with that Go. Those after it are tested with the Go that runs this program.
	lastOfOldestGo = 35
)

// floorOf has the modules that are tested, by their folders, with the first minor that each
// is tested with. Those that depend on a minor of their own are not among them.
func floorOf() map[string]int {
	return map[string]int{
		".":                        floor,
		"internal/apiservertest":   floor,
		forkModule:                 floor,
		"lifecycle/virtualkubelet": floor + 1, // what virtual-kubelet v1.12.0 requires
	}
}

// testedModules are the folders of floorOf, kubegrace's own first.
func testedModules() []string { return slices.Sorted(maps.Keys(floorOf())) }

// forkModule is tested below the floor too. It imports what a fork of the kubelet vendors,
// which therefore builds and works down to the oldest minor. The rest of kubegrace may use
// what came later: lifecycle/stopsignal and validation the types of KEP-4960,
// shutdown/apistatus the conditions' generation.
const forkModule = "internal/fork"

// whatIsTested says what is done with a minor.
func whatIsTested(minor int) string {
	if minor < floor {
		return "tests of " + forkModule
	}
	for name, first := range floorOf() {
		if minor < first { // there is one such module
			return "vet, all tests but " + path.Base(name) + "'s"
		}
	}
	return "vet, all tests"
}

// minorName is how a minor is called.
func minorName(minor int) string { return fmt.Sprintf("v0.%d", minor) }

// chooseMinors reads --only: a list of oldest, floor, newest and names of minors, in any
// order. "" is all of them. They are given from the newest to the oldest, each once.
func chooseMinors(only string) ([]int, error) {
	names := map[string]int{"oldest": oldest, "floor": floor, "newest": newest}
	var all []int
	for minor := newest; minor >= oldest; minor-- {
		names[minorName(minor)] = minor
		all = append(all, minor)
	}
	if only == "" {
		return all, nil
	}
	var chosen []int
	for name := range strings.SplitSeq(only, ",") {
		minor, known := names[strings.TrimSpace(name)]
		if !known {
			return nil, fmt.Errorf("--only: %q is none of oldest, floor, newest and %s to %s", name, minorName(oldest), minorName(newest))
		}
		chosen = append(chosen, minor)
	}
	slices.Sort(chosen)
	chosen = slices.Compact(chosen)
	slices.Reverse(chosen)
	return chosen, nil
}
