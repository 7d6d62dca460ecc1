package main

import (
	"context"
	"errors"
	"fmt"
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

// judge tests one mutant. An error says that it could not be judged.
func (b *bench) judge(ctx context.Context, m mutation, index int) (j judged, err error) {
	began := time.Now()
	defer func() { j.took = time.Since(began) }()
	j = judged{mutation: m, verdict: unreached}
	reaching := b.coverage.reaching(m)
	if len(reaching) == 0 {
		return j, nil
	}
	dir, err := openFolder(b.run.temp, "mutant-")
	if err != nil {
		return j, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	j.verdict = survived
	for _, folder := range b.pkg.judges {
		quick, slowly := split(reaching, folder)
		if len(quick)+len(slowly) == 0 {
			continue
		}
		binary := b.binary(folder)
		if b.number[index] == 0 {
			binary = filepath.Join(dir, "mutant.test")
			if err := b.compileAlone(ctx, m, dir, folder, binary); err != nil {
				return j, err
			}
		}
		for i, tests := range [][]reach{quick, slowly} {
			if i > 0 && b.run.o.quick {
				continue
			}
			j.verdict, j.by, err = b.test(ctx, dir, binary, b.number[index], i, tests)
			if err != nil || j.verdict != survived {
				return j, err
			}
		}
	}
	return j, nil
}

// sound is an error if a test fails in the binaries of all mutants while none is chosen. It notes how
// long the tests take.
func (b *bench) sound(ctx context.Context) error {
	for _, judge := range b.pkg.judges {
		const patience = 10 * time.Minute
		b.limits[judge] = [2]time.Duration{patience, patience}
		var limits [2]time.Duration
		quick, slowly := split(b.coverage.tests, judge)
		for i, tests := range [][]reach{quick, slowly} {
			if i > 0 && b.run.o.quick {
				break
			}
			began := time.Now()
			v, by, err := b.test(ctx, b.dir, b.binary(judge), 0, i, tests)
			if err != nil {
				return err
			}
			if v != survived {
				return fmt.Errorf("without a mutation: %s by %s", v, by)
			}
			limits[i] = b.run.o.timeout + 3*time.Since(began)
		}
		b.limits[judge] = limits
	}
	return nil
}

// compileAlone compiles a mutant that cannot share a binary with others.
func (b *bench) compileAlone(ctx context.Context, m mutation, dir, folder, binary string) error {
	text, err := os.ReadFile(filepath.Join(b.run.o.root, filepath.FromSlash(m.file)))
	if err != nil {
		return err
	}
	overlay, err := b.run.overlay(dir, map[string]string{m.file: string(m.apply(text))})
	if err != nil {
		return err
	}
	return b.run.compile(ctx, folder, binary, overlay)
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

// test runs tests of one package against the mutant of that number, until one fails: quick ones, or those
// that are slow, 0 or 1.
func (b *bench) test(ctx context.Context, dir, binary string, number, speed int, tests []reach) (verdict, string, error) {
	if len(tests) == 0 {
		return survived, "", nil
	}
	limit := b.limits[tests[0].judge][speed]
	names := make([]string, 0, len(tests))
	for _, t := range tests {
		names = append(names, t.test)
	}
	// The tests see to the limit themselves; what hangs harder than that is killed.
	limited, cancel := context.WithTimeout(ctx, limit+5*time.Second)
	defer cancel()
	out, err := b.run.commandIn(limited, place{
		dir: filepath.Join(b.run.o.root, tests[0].judge), temp: filepath.Join(dir, "tmp"),
		env: []string{selectorName + "=" + strconv.Itoa(number)},
	}, binary, "-test.run", exactly(names...), "-test.failfast", "-test.timeout", limit.String())
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
