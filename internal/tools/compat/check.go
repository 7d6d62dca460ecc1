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
	oldestGo   string // the toolchain up to lastOfOldestGo
	progress   io.Writer
	modules    []testedModule
	kubernetes []string // all modules that are released with Kubernetes
	releases   releases
}

// prepare copies the repository into a folder and finds out what there is to test with.
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

// all tests minors and prints their table, also when it is interrupted.
func (c *checker) all(ctx context.Context, minors []int, stdout io.Writer) error {
	var rows []row
	failed := 0
	for _, minor := range minors {
		r := c.one(ctx, minor)
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

// explain prints what a command has printed that failed, less what go test says of
// packages that did not fail.
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

// one tests one minor.
func (c *checker) one(ctx context.Context, minor int) row {
	began := time.Now()
	r := row{kubernetes: minorName(minor), goVersion: c.toolchain(minor), what: whatIsTested(minor)}
	r.err = c.test(ctx, minor, &r)
	r.took = time.Since(began)
	return r
}

// test does the work of one, and fills in the versions.
func (c *checker) test(ctx context.Context, minor int, r *row) error {
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

// toolchain is the Go that a minor is tested with, as GOTOOLCHAIN has it.
func (c *checker) toolchain(minor int) string {
	if minor <= lastOfOldestGo {
		return c.oldestGo
	}
	return "local"
}

// run calls the go command with the toolchain of a minor.
func (c *checker) run(ctx context.Context, minor int, folder string, args ...string) ([]byte, error) {
	call := command{dir: folder, env: []string{"GOTOOLCHAIN=" + c.toolchain(minor)}, args: args}
	return run(ctx, call)
}

// testModule vets and tests a module with a version of Kubernetes, which its go.mod has.
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

// testFork tests what forks of the kubelet vendor, with the Kubernetes libraries replaced as
// they do.
func (c *checker) testFork(ctx context.Context, minor int, version string) error {
	for _, m := range c.modules {
		// Another minor was tested in the copy before.
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

// tidy fills go.mod and go.sum, and then asks whether the packages are built with the
// version of Kubernetes that is to be tested: a requirement may raise it unseen.
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

// write writes files into a folder, which is made.
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
