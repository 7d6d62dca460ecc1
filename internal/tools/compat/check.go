package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// checker tests minors, one after the other, in a copy of the repository.
type checker struct {
	folder     string // of the copy
	oldestGo   string // the toolchain for minors up to lastOfOldestGo
	progress   io.Writer
	modules    []testedModule
	kubernetes []string // the paths of all required modules that are released with Kubernetes
	releases   releases
}

// prepare copies the repository into a folder, and lists the releases of the Kubernetes
// libraries.
func prepare(ctx context.Context, root, folder, oldestGo string, progress io.Writer) (*checker, error) {
	c := &checker{folder: folder, oldestGo: oldestGo, progress: progress}
	if err := copyRepository(ctx, root, filepath.Join(folder, "copy")); err != nil {
		return nil, err
	}
	for _, name := range testedModules() {
		m, err := readModule(name, filepath.Join(folder, "copy", name))
		if err != nil {
			return nil, err
		}
		c.modules = append(c.modules, m)
		c.kubernetes = append(c.kubernetes, m.kubernetes...)
	}
	slices.Sort(c.kubernetes)
	c.kubernetes = slices.Compact(c.kubernetes)
	var err error
	if c.releases, err = listReleases(ctx, c.modules[0].folder, c.kubernetes); err != nil {
		c.explain(err)
		return nil, fmt.Errorf("failed to list the releases of Kubernetes: %w", err)
	}
	if c.releases.has(newest + 1) {
		fmt.Fprintf(progress, "Kubernetes %s is out, and is not tested: see matrix.go.\n", minorName(newest+1))
	}
	return c, nil
}

// testAll tests minors and prints their table. If ctx ends, it prints the rows that are done.
func (c *checker) testAll(ctx context.Context, minors []int, stdout io.Writer) error {
	var rows []row
	failed := 0
	for _, minor := range minors {
		r := c.testMinor(ctx, minor)
		if ctx.Err() != nil {
			break
		}
		if r.err != nil {
			failed++
			fmt.Fprintf(c.progress, "%s: FAILED: %v\n", r.kubernetes, r.err)
			c.explain(r.err)
		}
		rows = append(rows, r)
	}
	if err := printTable(stdout, rows); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%d of %d rows are missing: %w", len(minors)-len(rows), len(minors), context.Cause(ctx))
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d rows failed", failed, len(rows))
	}
	return nil
}

// explain prints the output of a failed command, without the lines of go test for packages that
// have passed.
func (c *checker) explain(err error) {
	failed, ok := errors.AsType[*failure](err)
	if !ok {
		return
	}
	for line := range strings.Lines(string(failed.output)) {
		if !strings.HasPrefix(line, "ok  \t") && !strings.HasPrefix(line, "?   \t") {
			fmt.Fprintln(c.progress, strings.TrimRight(line, "\n"))
		}
	}
}

// testMinor tests one minor and returns its row.
func (c *checker) testMinor(ctx context.Context, minor int) row {
	began := time.Now()
	r := row{kubernetes: minorName(minor), goVersion: c.toolchain(minor), what: whatIsTested(minor)}
	r.err = c.runTests(ctx, minor, &r)
	r.took = time.Since(began)
	return r
}

// runTests runs the tests of one minor, and sets the versions in its row.
func (c *checker) runTests(ctx context.Context, minor int, r *row) error {
	version, err := c.releases.newestPatch(minor)
	if err != nil {
		return err
	}
	r.kubernetes = version
	running, err := c.run(ctx, minor, c.folder, "env", "GOVERSION")
	if err != nil {
		return err
	}
	r.goVersion = strings.TrimSpace(string(running))
	if minor < floor {
		return c.testFork(ctx, minor, version)
	}
	for _, m := range c.modules {
		if minor < floorOf()[m.name] {
			continue
		}
		goMod, err := setKubernetes(m.goMod, version)
		if err != nil {
			return err
		}
		if err := c.testModule(ctx, minor, version, m, goMod); err != nil {
			return fmt.Errorf("module %s: %w", m.name, err)
		}
	}
	return nil
}

// toolchain returns the Go toolchain that a minor is tested with, for GOTOOLCHAIN.
func (c *checker) toolchain(minor int) string {
	if minor <= lastOfOldestGo {
		return c.oldestGo
	}
	return "local"
}

// run runs the go command with the toolchain of a minor, and returns its standard output.
func (c *checker) run(ctx context.Context, minor int, folder string, args ...string) ([]byte, error) {
	call := command{dir: folder, env: []string{"GOTOOLCHAIN=" + c.toolchain(minor)}, args: args}
	return run(ctx, call)
}

// testModule vets and tests a module with a go.mod that has the given version of Kubernetes.
func (c *checker) testModule(ctx context.Context, minor int, version string, m testedModule, goMod []byte) error {
	if err := write(m.folder, map[string][]byte{"go.mod": goMod}); err != nil {
		return err
	}
	fmt.Fprintf(c.progress, "%s: testing module %s ...\n", version, m.name)
	if err := c.tidy(ctx, minor, version, m.folder, "./..."); err != nil {
		return err
	}
	for _, args := range [][]string{{"vet", "./..."}, {"test", "./..."}} {
		if _, err := c.run(ctx, minor, m.folder, args...); err != nil {
			return err
		}
	}
	return nil
}

// testFork tests forkModule with a go.mod that replaces the Kubernetes libraries, as that of a
// fork of the kubelet does.
func (c *checker) testFork(ctx context.Context, minor int, version string) error {
	for _, m := range c.modules {
		// Undo the changes for the minor that was tested in this copy before.
		if err := write(m.folder, map[string][]byte{"go.mod": m.goMod}); err != nil {
			return err
		}
	}
	fork := c.modules[slices.IndexFunc(c.modules, func(m testedModule) bool { return m.name == forkModule })]
	goMod, err := replaceKubernetes(fork.goMod, c.kubernetes, version)
	if err != nil {
		return err
	}
	return c.testModule(ctx, minor, version, fork, goMod)
}

// tidy completes go.mod and go.sum. It returns an error if the packages would be built with
// another version of Kubernetes, because a requirement of another module may raise the version.
func (c *checker) tidy(ctx context.Context, minor int, version, folder, packages string) error {
	if _, err := c.run(ctx, minor, folder, "mod", "tidy"); err != nil {
		return err
	}
	out, err := c.run(ctx, minor, folder, "list", "-deps", "-test", "-f", listFormat, packages)
	if err != nil {
		return err
	}
	return builtWith(out, c.kubernetes, version)
}

// write makes a folder and writes files into it.
func write(folder string, files map[string][]byte) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("failed to make a folder: %w", err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return fmt.Errorf("failed to write %s: %w", name, err)
		}
	}
	return nil
}
