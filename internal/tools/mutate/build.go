package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// compiledMutants has the compiled mutants of one package.
type compiledMutants struct {
	run      *run
	pkg      mutated
	coverage coverage
	dir      string
	limits   map[string][2]time.Duration // by test folder: the time limits of its quick and of its slow tests
	number   map[int]int                 // by the index of a mutation: its number in the shared binaries; 0: it is not in them
}

// prepare checks which mutations compile. It builds one test binary for each test folder, with all
// mutants that can share a binary.
func (r *run) prepare(ctx context.Context, pkg mutated, mutations []mutation) (c *compiledMutants, valid []bool, err error) {
	c = &compiledMutants{run: r, pkg: pkg, number: map[int]int{}, limits: map[string][2]time.Duration{}, dir: filepath.Join(r.temp, filepath.Base(pkg.folder))}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return nil, nil, err
	}
	check, err := r.newChecker(ctx, pkg)
	if err != nil {
		return nil, nil, err
	}
	texts, byFile := map[string][]byte{}, map[string][]numbered{}
	valid = make([]bool, len(mutations))
	for i, m := range mutations {
		if texts[m.file] == nil {
			if texts[m.file], err = os.ReadFile(filepath.Join(r.o.root, filepath.FromSlash(m.file))); err != nil {
				return nil, nil, err
			}
		}
		if valid[i] = check.compiles(m, texts[m.file]); valid[i] {
			byFile[m.file] = append(byFile[m.file], numbered{mutation: m, number: i + 1})
			c.number[i] = i + 1
		}
	}
	replaced := map[string]string{filepath.Join(pkg.folder, "kubegrace_mutant.go"): selectorFile(check.loaded.Name)}
	for file, mutants := range byFile {
		text, alone, err := instrument(file, texts[file], mutants)
		if err != nil {
			return nil, nil, err
		}
		for _, m := range alone {
			delete(c.number, m.number-1)
		}
		replaced[file] = text
	}
	overlay, err := r.overlay(c.dir, replaced)
	if err != nil {
		return nil, nil, err
	}
	for _, folder := range pkg.testFolders {
		if err := r.compile(ctx, folder, c.binary(folder), overlay); err != nil {
			return nil, nil, fmt.Errorf("failed to compile the mutants: %w", err)
		}
	}
	return c, valid, nil
}

// binary returns the file of the test binary that mutants share.
func (c *compiledMutants) binary(testFolder string) string {
	return filepath.Join(c.dir, filepath.Base(testFolder)+"-shared.test")
}

// compile compiles the tests of a package with the files that an overlay replaces.
func (r *run) compile(ctx context.Context, folder, binary, overlay string) error {
	_, err := r.command(ctx, r.o.root, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, "./"+folder)
	return err
}

// overlay writes the new contents of files, whose names are relative to the root, and a file for
// -overlay. It returns the name of that file.
func (r *run) overlay(dir string, contents map[string]string) (string, error) {
	replace := map[string]string{}
	for file, text := range contents {
		changed := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(r.o.root, filepath.FromSlash(file))] = changed
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, overlay, 0o600)
}
