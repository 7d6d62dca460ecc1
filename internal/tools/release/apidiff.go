package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/tools/go/packages"
)

// apidiff prints how the exported API of each module that others import differs from that of its
// last tag. It returns an error if a change breaks importers and the changelog does not say so.
func (r repository) apidiff(ctx context.Context, stdout io.Writer) error {
	changelog, err := r.read(changelogFile)
	if err != nil {
		return err
	}
	var unannounced error
	for _, m := range r.modules {
		if !m.importable() {
			continue
		}
		versions, err := r.versions(ctx, m)
		if err != nil {
			return err
		}
		if len(versions) == 0 {
			fmt.Fprintf(stdout, "%s: no tag yet: nothing to compare with\n", m.mod.Module.Mod.Path)
			continue
		}
		last := versions[len(versions)-1]
		report, err := r.compare(ctx, m, last)
		if err != nil {
			return err
		}
		if len(report.Changes) == 0 {
			fmt.Fprintf(stdout, "%s: its API is that of %s\n", m.mod.Module.Mod.Path, last)
			continue
		}
		fmt.Fprintf(stdout, "%s: its API differs from that of %s\n%s", m.mod.Module.Mod.Path, last, report.String())
		if breaks(report) && !saysBreaking(string(changelog), last) {
			unannounced = errors.Join(unannounced, fmt.Errorf("%s breaks importers of %s: revert that, or say \"Breaking:\" and what to do in %s", m.mod.Module.Mod.Path, last, changelogFile))
		}
	}
	return unannounced
}

// breaks reports whether a change is incompatible.
func breaks(report apidiff.Report) bool {
	for _, change := range report.Changes {
		if !change.Compatible {
			return true
		}
	}
	return false
}

// compare clones the repository at the tag of a version, and compares the API of a module there with
// its API in the working tree.
func (r repository) compare(ctx context.Context, m module, version string) (report apidiff.Report, err error) {
	folder, err := os.MkdirTemp("", "kubegrace-apidiff-")
	if err != nil {
		return apidiff.Report{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if _, err := r.git(ctx, "-c", "advice.detachedHead=false", "clone", "--quiet", "--shared", "--branch", m.tag(version), ".", folder); err != nil {
		return apidiff.Report{}, err
	}
	before, err := load(ctx, filepath.Join(folder, filepath.FromSlash(m.folder)))
	if err != nil {
		return apidiff.Report{}, fmt.Errorf("%s: %w", m.tag(version), err)
	}
	now, err := load(ctx, filepath.Join(r.root, filepath.FromSlash(m.folder)))
	if err != nil {
		return apidiff.Report{}, err
	}
	return apidiff.ModuleChanges(before, now), nil
}

// load type-checks the packages of a module for Linux, without internal packages.
func load(ctx context.Context, folder string) (*apidiff.Module, error) {
	loaded, err := packages.Load(&packages.Config{
		Context: ctx, Dir: folder, Env: append(os.Environ(), "GOOS=linux", "GOWORK=off"),
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedModule,
	}, "./...")
	if err != nil {
		return nil, err
	}
	found := &apidiff.Module{}
	for _, p := range loaded {
		for _, problem := range p.Errors {
			err = errors.Join(err, problem)
		}
		if p.Module != nil && !strings.Contains(p.PkgPath+"/", "/internal/") {
			found.Path = p.Module.Path
			found.Packages = append(found.Packages, p.Types)
		}
	}
	return found, err
}
