package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// releases has the published versions of modules by path.
type releases map[string][]string

// listReleases asks the module proxy for the versions of modules.
func listReleases(ctx context.Context, dir string, modules []string) (releases, error) {
	args := append([]string{"list", "-m", "-versions", "-json=Path,Versions"}, modules...)
	out, err := run(ctx, command{dir: dir, args: args})
	if err != nil {
		return nil, err
	}
	return parseReleases(strings.NewReader(string(out)))
}

// parseReleases reads the output of go list: JSON objects, one after the other.
func parseReleases(r io.Reader) (releases, error) {
	found := releases{}
	for dec := json.NewDecoder(r); ; {
		var module struct {
			Path     string
			Versions []string
		}
		if err := dec.Decode(&module); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, fmt.Errorf("failed to read go list's output: %w", err)
		}
		found[module.Path] = module.Versions
	}
}

// newestPatch returns the newest release of a minor that all modules have. They are released
// together, but a module proxy may learn of some releases later than of others.
func (r releases) newestPatch(minor int) (string, error) {
	counts := map[string]int{} // how many modules have a version
	for _, versions := range r {
		for _, version := range versions {
			counts[version]++
		}
	}
	newest := ""
	for version, modules := range counts {
		released := semver.IsValid(version) && semver.Prerelease(version) == ""
		if modules == len(r) && released && semver.MajorMinor(version) == minorName(minor) && semver.Compare(version, newest) > 0 {
			newest = version
		}
	}
	if newest == "" {
		return "", fmt.Errorf("there is no release of %s that all of these modules have: %s", minorName(minor), strings.Join(slices.Sorted(maps.Keys(r)), ", "))
	}
	return newest, nil
}

// has reports whether a minor is released.
func (r releases) has(minor int) bool {
	_, err := r.newestPatch(minor)
	return err == nil
}
