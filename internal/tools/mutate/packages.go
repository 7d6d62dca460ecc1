package main

import (
	"fmt"
	"slices"
	"strings"
)

// mutated is a package that is mutated.
type mutated struct {
	folder string   // from the root of the repository
	judges []string // the folders of the packages whose tests judge it, quick ones first
}

// allPackages are the packages with logic that is worth it. The parts of the drain are
// also judged by the tests of the drain, which is all that uses them.
func allPackages() []mutated {
	own := func(folder string) mutated { return mutated{folder: folder, judges: []string{folder}} }
	part := func(folder string) mutated { return mutated{folder: folder, judges: []string{folder, "shutdown"}} }
	return []mutated{
		own("graceperiod"),
		own("shutdown/plan"),
		own("lifecycle"),
		part("shutdown/internal/call"),
		part("shutdown/internal/kills"),
		part("shutdown/internal/statefile"),
		part("shutdown/internal/statuses"),
		own("shutdown"),
		own("shutdown/logind"),
	}
}

// choosePackages gives those of allPackages that only names: comma-separated folders, or
// "..." below one. The empty string names all.
func choosePackages(only string) ([]mutated, error) {
	if only == "" {
		return allPackages(), nil
	}
	var chosen []mutated
	for name := range strings.SplitSeq(only, ",") {
		name = strings.TrimPrefix(strings.TrimSuffix(strings.TrimSpace(name), "/"), "./")
		below, isPattern := strings.CutSuffix(name, "/...")
		found := false
		for _, p := range allPackages() {
			if p.folder != name && (!isPattern || p.folder != below && !strings.HasPrefix(p.folder, below+"/")) {
				continue
			}
			found = true
			if !slices.ContainsFunc(chosen, func(c mutated) bool { return c.folder == p.folder }) {
				chosen = append(chosen, p)
			}
		}
		if !found {
			return nil, fmt.Errorf("--only: %q is no package that is mutated", name)
		}
	}
	return chosen, nil
}
