package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// tree is a checkout whose benchmarks can be run.
type tree struct {
	name     string // of the file for its results, without .txt
	programs []program
}

// program is the test program of one package.
type program struct {
	dir        string   // of the package, where it runs
	path       string   // of the program
	pkg        string   // the import path without that of the module, as in the table
	benchmarks []string // the chosen ones, as in BenchmarkDrain
}

// build builds the test programs of all packages that have a benchmark which --only chooses.
func build(ctx context.Context, o options, root, folder string, progress io.Writer) (tree, error) {
	t := tree{name: "here"}
	fmt.Fprintln(progress, "Building the benchmarks; the first time this takes a few minutes.")
	for _, module := range o.modules {
		packages, err := listPackages(ctx, filepath.Join(root, module), o.only)
		if errors.Is(err, fs.ErrNotExist) && o.base != "" {
			continue // the module is in only one of the two commits
		}
		if err != nil {
			return t, err
		}
		for _, p := range packages {
			p.path = filepath.Join(folder, strconv.Itoa(len(t.programs))+".test")
			if _, err := output(ctx, p.dir, "go", "test", "-c", "-o", p.path, "."); err != nil {
				return t, err
			}
			t.programs = append(t.programs, p)
		}
	}
	if len(t.programs) == 0 {
		return t, fmt.Errorf("no benchmark in %s matches %q", strings.Join(o.modules, " "), o.only)
	}
	return t, nil
}

// listPackages returns the packages of a module that have a chosen benchmark. Their programs
// are not built.
func listPackages(ctx context.Context, dir string, only *regexp.Regexp) ([]program, error) {
	const format = "{{.Dir}}\t{{.ImportPath}}\t{{.Module.Path}}{{range .TestGoFiles}}\t{{.}}{{end}}{{range .XTestGoFiles}}\t{{.}}{{end}}"
	out, err := output(ctx, dir, "go", "list", "-f", format, "./...")
	if err != nil {
		return nil, err
	}
	var all []program
	for line := range strings.Lines(out) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		p := program{dir: fields[0], pkg: shortName(fields[1], fields[2])}
		if err := p.chooseBenchmarks(fields[3:], only); err != nil {
			return nil, err
		}
		if len(p.benchmarks) > 0 {
			all = append(all, p)
		}
	}
	return all, nil
}

// chooseBenchmarks sets the benchmarks of a program from those in its test files.
func (p *program) chooseBenchmarks(files []string, only *regexp.Regexp) error {
	declared := regexp.MustCompile(`(?m)^func Benchmark(\w*)\(`)
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(p.dir, file))
		if err != nil {
			return fmt.Errorf("failed to look for benchmarks: %w", err)
		}
		for _, match := range declared.FindAllSubmatch(content, -1) {
			if name := string(match[1]); only.MatchString(p.pkg + "." + name) {
				p.benchmarks = append(p.benchmarks, "Benchmark"+name)
			}
		}
	}
	return nil
}

// shortName returns an import path without that of its module. For the package of the module's
// own folder it returns the last element.
func shortName(path, module string) string {
	if short, isBelow := strings.CutPrefix(path, module+"/"); isBelow {
		return short
	}
	return filepath.Base(path)
}

// output runs a program and returns its standard output.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Cancel = func() error { return interrupt(cmd) }
	cmd.WaitDelay = grace
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		printed := out
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			printed = append(printed, exit.Stderr...)
		}
		return "", fmt.Errorf("%s %s in %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), dir, err, printed)
	}
	return string(out), nil
}
