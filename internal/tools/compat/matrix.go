package main

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// The minors of the Kubernetes libraries: 32 stands for v0.32. Raise newest when Kubernetes has a
// new minor, and floor when go.mod requires a newer one.
const (
	// oldest is the first minor with which forkModule builds and passes. KubeEdge uses it.
	oldest = 32
	// floor is the minor that go.mod requires. From this minor on everything is tested, except
	// the modules with a later floor in floorOf.
	floor = 34
	// newest is the latest minor that everything is tested with.
	newest = 37
	// lastOfOldestGo is the last minor that builds with the Go version of our go.mod. Minors up to
	// it are tested with that Go, later ones with the Go that runs this program.
	lastOfOldestGo = 35
)

// floorOf returns the tested modules by their folders, each with the first minor that it is
// tested with. Modules that work with one minor only, such as internal/apiserver, are left out.
func floorOf() map[string]int {
	return map[string]int{
		".":                        floor,
		"internal/apiservertest":   floor,
		forkModule:                 floor,
		"lifecycle/virtualkubelet": floor + 1, // what virtual-kubelet v1.12.0 requires
	}
}

// testedModules returns the folders of the tested modules. The first one is ".".
func testedModules() []string { return slices.Sorted(maps.Keys(floorOf())) }

// forkModule is the folder of the module that is tested below the floor too. It imports the
// packages that a fork of the kubelet vendors, which must work down to the oldest minor. The other
// packages use what later minors have: lifecycle/stopsignal and validation use the types of
// KEP-4960, and shutdown/apistatus uses observedGeneration in the status of pods.
const forkModule = "internal/fork"

// whatIsTested returns the cell of the table that says what is tested with a minor.
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

// minorName returns the name of a minor, as in v0.34.
func minorName(minor int) string { return fmt.Sprintf("v0.%d", minor) }

// chooseMinors returns the minors that --only lists, from the newest to the oldest, each once. The
// list has names of minors, oldest, floor and newest, in any order; "" stands for all minors.
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
