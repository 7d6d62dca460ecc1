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

// proxy is what the module proxy says.
type proxy struct {
	folder   string              // of a module, in which it is asked
	versions map[string][]string // by path
	failed   map[string]string   // why there are no versions of a path, or not what was withdrawn
}

// askProxy asks for the versions of what modules require. That it has none of a path is no
// error, but stands in failed.
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
		if answer.Error == nil || len(answer.Versions) > 0 { // else nothing was said
			p.versions[answer.Path] = answer.Versions
		}
	}
}

// goCommand runs the go command and gives its output. An error has what it complains of.
func (p *proxy) goCommand(ctx context.Context, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", args...)
	var stdout, stderr bytes.Buffer
	command.Dir, command.Stdout, command.Stderr = p.folder, &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.Bytes(), fmt.Errorf("go %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.Bytes(), nil
}

// anyFailure is why something could not be had: that of the first path.
func (p *proxy) anyFailure() string {
	first := ""
	for path := range p.failed {
		if first == "" || path < first {
			first = path
		}
	}
	return p.failed[first]
}

// finding is what there is to say of a dependency.
type finding struct {
	lines  []string
	behind bool
}

// compare finds out whether a dependency of a module is behind.
func (p *proxy) compare(ctx context.Context, m module, required modversion.Version) (finding, error) {
	var f finding
	about := func(format string, args ...any) {
		f.lines = append(f.lines, fmt.Sprintf("module %s: %s: ", m.name, required)+fmt.Sprintf(format, args...))
	}
	if why, ok := p.failed[required.Path]; ok {
		about("not all of its versions can be had: %s", why)
	}
	for _, v := range newer(required.Version, p.versions[required.Path]) {
		needs, why, err := p.fetch(ctx, modversion.Version{Path: required.Path, Version: v})
		switch {
		case err != nil:
			return f, err
		case why != "":
			about("%s cannot be had: %s", v, why)
		case version.Compare("go"+needs, "go"+m.goNeeded) > 0:
			about("%s needs Go %s, and the module has go %s", v, needs, m.goNeeded)
		default:
			about("is behind %s: cd %s && go get %s@%s && go mod tidy", v, m.name, required.Path, v)
			f.behind = true
			return f, nil
		}
	}
	return f, nil
}

// fetch downloads a version and tells which Go it needs, or why it cannot be had.
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
