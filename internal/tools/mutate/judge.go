package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// verdict is what became of a mutant.
type verdict string

const (
	killed    verdict = "killed"
	timedOut  verdict = "timed out"
	survived  verdict = "survived"
	accepted  verdict = "accepted"     // it has survived, and survivors.yaml says why
	invalid   verdict = "not compiled" // the mutation is no valid Go
	unreached verdict = "not reached"  // by any test
)

// judged is a mutant with its verdict.
type judged struct {
	mutation mutation
	verdict  verdict
	by       string // the test that has killed it
	took     time.Duration
}

// judge compiles and tests one mutant. An error says that it could not be judged.
func (r *run) judge(ctx context.Context, m mutation, c coverage) (j judged, err error) {
	began := time.Now()
	j = judged{mutation: m, verdict: unreached}
	reaching := c.reaching(m)
	if len(reaching) == 0 {
		return j, nil
	}
	dir, err := os.MkdirTemp(r.temp, "mutant-")
	if err != nil {
		return j, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	overlay, err := r.overlay(dir, m)
	if err != nil {
		return j, err
	}
	j.verdict = survived
	for _, folder := range m.pkg.judges {
		quick, slowly := split(reaching, folder)
		if len(quick)+len(slowly) == 0 {
			continue
		}
		binary := filepath.Join(dir, "mutant.test")
		if _, err := r.command(ctx, r.o.root, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, "./"+folder); err != nil {
			if ctx.Err() != nil {
				return j, context.Cause(ctx)
			}
			j.verdict = invalid
			return j, nil
		}
		for _, tests := range [][]reach{quick, slowly} {
			if len(tests) == 0 {
				continue
			}
			j.verdict, j.by, err = r.test(ctx, dir, binary, tests)
			if err != nil || j.verdict != survived {
				j.took = time.Since(began)
				return j, err
			}
		}
	}
	j.took = time.Since(began)
	return j, nil
}

// overlay writes the mutated file, and the file that the go command takes it from.
func (r *run) overlay(dir string, m mutation) (string, error) {
	original := filepath.Join(r.o.root, filepath.FromSlash(m.file))
	text, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, "mutant.go")
	if err := os.WriteFile(changed, m.apply(text), 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, overlay, 0o600)
}

// split gives the quick and the slow tests of one package.
func split(tests []reach, folder string) (quick, slowly []reach) {
	for _, t := range tests {
		switch {
		case t.judge != folder:
		case t.took < slow:
			quick = append(quick, t)
		default:
			slowly = append(slowly, t)
		}
	}
	return quick, slowly
}

// test runs tests, until one fails.
func (r *run) test(ctx context.Context, dir, binary string, tests []reach) (verdict, string, error) {
	limit := r.o.timeout
	names := make([]string, 0, len(tests))
	for _, t := range tests {
		limit += 3 * t.took
		names = append(names, t.test)
	}
	// The tests see to the limit themselves; what hangs harder than that is killed.
	limited, cancel := context.WithTimeout(ctx, limit+5*time.Second)
	defer cancel()
	out, err := r.commandIn(limited, filepath.Join(r.o.root, tests[0].judge), filepath.Join(dir, "tmp"),
		binary, "-test.run", exactly(names...), "-test.failfast", "-test.timeout", limit.String())
	switch {
	case ctx.Err() != nil:
		return "", "", context.Cause(ctx)
	case limited.Err() != nil || strings.Contains(out, "panic: test timed out after "):
		return timedOut, "", nil
	case err != nil:
		return killed, culprit(out), nil
	default:
		return survived, "", nil
	}
}

// culprit is the first test that has failed, or what else has ended the tests.
func culprit(out string) string {
	if m := regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`).FindStringSubmatch(out); m != nil {
		return m[1]
	}
	if m := regexp.MustCompile(`(?m)^(?:panic|fatal error): .*`).FindString(out); m != "" {
		return m
	}
	return strconv.Quote(out[max(0, len(out)-80):])
}
