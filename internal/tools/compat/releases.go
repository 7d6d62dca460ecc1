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

// releases are the versions of modules that there are, by path.
type releases map[string][]string

// listReleases asks for the versions of modules.
func listReleases(ctx context.Context, dir string, modules []string) (releases, error) {
	args := append([]string{"list", "-m", "-versions", "-json=Path,Versions"}, modules...)
	out, err := run(ctx, command{dir: dir, args: args})
	if err != nil {
		return nil, err
	}
	return parseReleases(strings.NewReader(string(out)))
}

// parseReleases reads what go list gives: one object after the other.
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

// newestPatch is the newest release of a minor that all modules have. They are released
// together, but a module proxy may know one of them later than another.
func (r releases) newestPatch(minor int) (string, error) {
	having := map[string]int{}
	for _, versions := range r {
		for _, version := range versions {
			having[version]++
		}
	}
	newest := ""
	for version, modules := range having {
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

// has tells whether a minor is out.
func (r releases) has(minor int) bool {
	_, err := r.newestPatch(minor)
	return err == nil
}
