package main

import (
	"fmt"
	"slices"
	"strings"
)

// mutated is a package that is mutated.
type mutated struct {
	folder      string   // from the root of the repository
	testFolders []string // the folders of the packages whose tests are run, quick ones first
}

// allPackages returns the packages that are mutated. For the parts of a drain the tests of package
// shutdown are run too, because only that package uses them.
func allPackages() []mutated {
	alone := func(folder string) mutated { return mutated{folder: folder, testFolders: []string{folder}} }
	part := func(folder string) mutated { return mutated{folder: folder, testFolders: []string{folder, "shutdown"}} }
	return []mutated{
		alone("graceperiod"),
		alone("shutdown/plan"),
		alone("lifecycle"),
		part("shutdown/internal/call"),
		part("shutdown/internal/drain"),
		part("shutdown/internal/host"),
		part("shutdown/internal/kills"),
		part("shutdown/internal/outbox"),
		part("shutdown/internal/store"),
		part("shutdown/internal/timetable"),
		part("shutdown/internal/windows"),
		alone("shutdown"),
		alone("shutdown/logind"),
	}
}

// choosePackages returns those of allPackages that --only lists: comma-separated folders, or a folder
// and /... for all below it. The empty string stands for all.
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
