package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"io"
	"os"
	"os/exec"
	"slices"

	"golang.org/x/mod/modfile"
	modversion "golang.org/x/mod/module"
)

// proxy has the answers of the module proxy.
type proxy struct {
	folder   string              // of a module, in which the go command is run
	versions map[string][]string // the versions of each path that the proxy knows
	failed   map[string]string   // by path: why not all of its versions are known
}

// askProxy asks for the versions of the dependencies of modules. If the proxy does not know one of
// them, that is no error, but is recorded in failed.
func askProxy(ctx context.Context, folder string, modules []module) (*proxy, error) {
	p := &proxy{folder: folder, versions: map[string][]string{}, failed: map[string]string{}}
	var paths []string
	for _, m := range modules {
		for _, required := range m.requires {
			paths = append(paths, required.Path)
		}
	}
	if len(paths) == 0 {
		return p, nil
	}
	slices.Sort(paths)
	out, err := p.goCommand(ctx, append([]string{"list", "-m", "-e", "-versions", "-json=Path,Versions,Error"}, slices.Compact(paths)...)...)
	if err != nil {
		return nil, err
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var answer struct {
			Path     string
			Versions []string
			Error    *struct{ Err string }
		}
		err := decoder.Decode(&answer)
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		if err != nil {
			return nil, fmt.Errorf("failed to read what go list says: %w", err)
		}
		if answer.Error != nil {
			p.failed[answer.Path] = answer.Error.Err
		}
		if answer.Error == nil || len(answer.Versions) > 0 { // an error may come with versions
			p.versions[answer.Path] = answer.Versions
		}
	}
}

// goCommand runs the go command and returns its standard output. The error contains the standard error
// output.
func (p *proxy) goCommand(ctx context.Context, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", args...)
	var stdout, stderr bytes.Buffer
	command.Dir, command.Stdout, command.Stderr = p.folder, &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.Bytes(), fmt.Errorf("go %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.Bytes(), nil
}

// anyFailure returns one of the failures: that of the first path in alphabetical order.
func (p *proxy) anyFailure() string {
	first := ""
	for path := range p.failed {
		if first == "" || path < first {
			first = path
		}
	}
	return p.failed[first]
}

// finding is the result of comparing a dependency.
type finding struct {
	lines  []string // to be printed
	behind bool     // a newer patch release can be used
}

// compare compares a dependency of a module with its newest patch releases.
func (p *proxy) compare(ctx context.Context, m module, required modversion.Version) (finding, error) {
	var f finding
	addLine := func(format string, args ...any) {
		f.lines = append(f.lines, fmt.Sprintf("module %s: %s: ", m.name, required)+fmt.Sprintf(format, args...))
	}
	if why, ok := p.failed[required.Path]; ok {
		addLine("not all of its versions can be had: %s", why)
	}
	for _, v := range newer(required.Version, p.versions[required.Path]) {
		needs, why, err := p.fetch(ctx, modversion.Version{Path: required.Path, Version: v})
		switch {
		case err != nil:
			return f, err
		case why != "":
			addLine("%s cannot be had: %s", v, why)
		case version.Compare("go"+needs, "go"+m.goNeeded) > 0:
			addLine("%s needs Go %s, and the module has go %s", v, needs, m.goNeeded)
		default:
			addLine("is behind %s: cd %s && go get %s@%s && go mod tidy", v, m.name, required.Path, v)
			f.behind = true
			return f, nil
		}
	}
	return f, nil
}

// fetch downloads a version. It returns the Go version that it needs, or why it cannot be downloaded.
func (p *proxy) fetch(ctx context.Context, wanted modversion.Version) (goNeeded, why string, err error) {
	out, failed := p.goCommand(ctx, "mod", "download", "-json", wanted.String())
	var answer struct{ GoMod, Error string }
	if err := json.Unmarshal(out, &answer); err != nil {
		return "", "", errors.Join(failed, err)
	}
	if answer.Error != "" {
		return "", answer.Error, nil
	}
	text, err := os.ReadFile(answer.GoMod)
	if err != nil {
		return "", "", err
	}
	file, err := modfile.ParseLax(answer.GoMod, text, nil)
	if err != nil {
		return "", "", err
	}
	if file.Go != nil {
		goNeeded = file.Go.Version
	}
	return goNeeded, "", nil
}
