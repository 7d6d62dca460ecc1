package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	modversion "golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// check prints what is missing for a version, or else the commands that make its tags.
func (r repository) check(ctx context.Context, version string, stdout io.Writer) error {
	if !semver.IsValid(version) || semver.Canonical(version) != version || semver.Compare(version, "v2.0.0-0") >= 0 {
		return fmt.Errorf("%q is not a version such as v0.1.0; from v2 on the import paths would have to change", version)
	}
	var missing []string
	for _, check := range []func(context.Context, string) ([]string, error){r.checkTree, r.checkTags, r.checkFiles, r.checkModules, r.checkPackages} {
		problems, err := check(ctx, version)
		if err != nil {
			return err
		}
		missing = append(missing, problems...)
	}
	for _, problem := range missing {
		fmt.Fprintln(stdout, problem)
	}
	if len(missing) > 0 {
		return fmt.Errorf("%d things are missing for %s", len(missing), version)
	}
	fmt.Fprintf(stdout, "Nothing is missing for %s. It is made by\n\n", version)
	var tags []string
	for _, m := range r.modules {
		if m.importable() {
			tags = append(tags, m.tag(version))
			fmt.Fprintf(stdout, "    git tag -a -m %s %s\n", version, m.tag(version))
		}
	}
	fmt.Fprintf(stdout, "    git push origin %s\n\nThese modules get no tag:\n\n", strings.Join(tags, " "))
	for _, m := range r.modules {
		if !m.importable() {
			fmt.Fprintf(stdout, "    %s\n", m.folder)
		}
	}
	return nil
}

// checkTree checks that everything is committed.
func (r repository) checkTree(ctx context.Context, _ string) ([]string, error) {
	out, err := r.git(ctx, "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	var problems []string
	for line := range strings.Lines(out) {
		problems = append(problems, strings.TrimSpace(line[2:])+": is not committed")
	}
	return problems, nil
}

// checkTags checks that the tags are new, and that no later version has a tag.
func (r repository) checkTags(ctx context.Context, version string) ([]string, error) {
	var problems []string
	for _, m := range r.modules {
		versions, err := r.versions(ctx, m)
		if err != nil {
			return nil, err
		}
		for _, other := range versions {
			switch {
			case !m.importable():
				problems = append(problems, fmt.Sprintf("the tag %s: this module is for this repository only and has no tags", m.tag(other)))
			case other == version:
				problems = append(problems, fmt.Sprintf("the tag %s: is there already; a version that was published cannot be changed", m.tag(other)))
			case semver.Compare(other, version) > 0:
				problems = append(problems, fmt.Sprintf("the tag %s: is a later version", m.tag(other)))
			}
		}
	}
	return problems, nil
}

// checkFiles checks the license, the README and the changelog.
func (r repository) checkFiles(_ context.Context, version string) ([]string, error) {
	var problems []string
	contents := map[string]string{}
	// The LICENSE of the top folder is also that of modules in folders without one.
	for _, name := range []string{"LICENSE", "README.md", changelogFile} {
		content, err := r.read(name)
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		if len(content) == 0 {
			problems = append(problems, name+": is not there, or empty")
		}
		contents[name] = string(content)
	}
	if !strings.Contains(contents["README.md"], version) {
		problems = append(problems, "README.md: does not name "+version)
	}
	return append(problems, checkChangelog(contents[changelogFile], version)...), nil
}

// checkModules checks the go.mod files of the modules that others import. The build of an importer uses
// their requirements and ignores their replacements. So a module that replaces another one by a folder
// must require a version of it that will exist.
func (r repository) checkModules(_ context.Context, version string) ([]string, error) {
	ours := map[string]module{}
	for _, m := range r.modules {
		ours[m.mod.Module.Mod.Path] = m
	}
	var problems []string
	for _, m := range r.modules {
		if !m.importable() {
			continue
		}
		for _, replace := range m.mod.Replace {
			if _, isOurs := ours[replace.Old.Path]; !isOurs || m.folder == "." {
				problems = append(problems, fmt.Sprintf("%s: replaces %s, which is not so for importers", goModFile(m), replace.Old.Path))
			}
		}
		for _, require := range m.mod.Require {
			if problem := checkRequirement(require, ours, version); problem != "" {
				problems = append(problems, goModFile(m)+": "+problem)
			}
		}
	}
	return problems, nil
}

// checkRequirement returns what is wrong with a requirement; "" if nothing is. ours has the modules of
// this repository by path.
func checkRequirement(require *modfile.Require, ours map[string]module, version string) string {
	required, isOurs := ours[require.Mod.Path]
	switch {
	case isOurs && !required.importable():
		return fmt.Sprintf("requires %s, which has no tags", require.Mod.Path)
	case isOurs && require.Mod.Version != version:
		return fmt.Sprintf("requires %s %s; must be %s", require.Mod.Path, require.Mod.Version, version)
	case isOurs, require.Indirect, !modversion.IsPseudoVersion(require.Mod.Version):
		return "" // other modules choose the versions of indirect requirements
	}
	// A module that has never had a tag, such as k8s.io/utils, has only pseudo-versions.
	if base, err := modversion.PseudoVersionBase(require.Mod.Version); err != nil || base != "" {
		return fmt.Sprintf("requires %s %s, which is between two versions", require.Mod.Path, require.Mod.Version)
	}
	return ""
}

// goModFile returns the name of the go.mod of a module.
func goModFile(m module) string {
	return filepath.ToSlash(filepath.Join(m.folder, "go.mod"))
}
