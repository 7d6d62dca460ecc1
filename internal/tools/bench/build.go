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
	name     string // of the file of its results
	programs []program
}

// program is the test program of one package.
type program struct {
	dir        string   // of the package, where it runs
	path       string   // of the program
	pkg        string   // as the table has it: the import path without the module's
	benchmarks []string // that were chosen, as Go names them
}

// build builds the test programs of all packages that have benchmarks which are wanted.
func build(ctx context.Context, o options, root, folder string, progress io.Writer) (tree, error) {
	t := tree{name: "here"}
	fmt.Fprintln(progress, "Building the benchmarks; the first time this takes a few minutes.")
	for _, module := range o.modules {
		packages, err := listPackages(ctx, filepath.Join(root, module), o.only)
		if errors.Is(err, fs.ErrNotExist) && o.base != "" {
			continue // one of the commits does not have it
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

// listPackages gives the packages of a module that have benchmarks which are wanted. Their
// programs are not built.
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
		if err := p.choose(fields[3:], only); err != nil {
			return nil, err
		}
		if len(p.benchmarks) > 0 {
			all = append(all, p)
		}
	}
	return all, nil
}

// choose finds the benchmarks in test files.
func (p *program) choose(files []string, only *regexp.Regexp) error {
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

// shortName is an import path below the root of the repository.
func shortName(path, module string) string {
	if short, below := strings.CutPrefix(path, module+"/"); below {
		return short
	}
	return filepath.Base(path)
}

// output runs a program and gives what it writes to its standard output.
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
		said := out
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			said = append(said, exit.Stderr...)
		}
		return "", fmt.Errorf("%s %s in %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), dir, err, said)
	}
	return string(out), nil
}
