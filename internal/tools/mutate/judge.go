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

// verdict is the result of a mutant.
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
	by       string // the test that has killed it, or the text of a panic
	took     time.Duration
}

// judge runs the tests that reach one mutant, and returns its verdict. It returns an error if the
// tests cannot be run.
func (c *compiledMutants) judge(ctx context.Context, m mutation, index int) (j judged, err error) {
	began := time.Now()
	defer func() { j.took = time.Since(began) }()
	j = judged{mutation: m, verdict: unreached}
	reaching := c.coverage.reaching(m)
	if len(reaching) == 0 {
		return j, nil
	}
	dir, err := openFolder(c.run.temp, "mutant-")
	if err != nil {
		return j, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	j.verdict = survived
	for _, folder := range c.pkg.testFolders {
		quick, slowly := quickAndSlow(reaching, folder)
		if len(quick)+len(slowly) == 0 {
			continue
		}
		binary := c.binary(folder)
		if c.number[index] == 0 {
			binary = filepath.Join(dir, "mutant.test")
			if err := c.compileAlone(ctx, m, dir, folder, binary); err != nil {
				return j, err
			}
		}
		for i, tests := range [][]reach{quick, slowly} {
			if i > 0 && c.run.o.quick {
				continue
			}
			j.verdict, j.by, err = c.test(ctx, dir, binary, c.number[index], i, tests)
			if err != nil || j.verdict != survived {
				return j, err
			}
		}
	}
	return j, nil
}

// checkUnmutated runs the tests in the shared binaries without choosing a mutant. It returns an
// error if one fails, and sets the limits from the time that they take.
func (c *compiledMutants) checkUnmutated(ctx context.Context) error {
	for _, folder := range c.pkg.testFolders {
		const patience = 10 * time.Minute
		c.limits[folder] = [2]time.Duration{patience, patience}
		var limits [2]time.Duration
		quick, slowly := quickAndSlow(c.coverage.tests, folder)
		for i, tests := range [][]reach{quick, slowly} {
			if i > 0 && c.run.o.quick {
				break
			}
			began := time.Now()
			v, by, err := c.test(ctx, c.dir, c.binary(folder), 0, i, tests)
			if err != nil {
				return err
			}
			if v != survived {
				return fmt.Errorf("without a mutation: %s by %s", v, by)
			}
			limits[i] = c.run.o.timeout + 3*time.Since(began)
		}
		c.limits[folder] = limits
	}
	return nil
}

// compileAlone compiles a mutant that cannot share a binary with others.
func (c *compiledMutants) compileAlone(ctx context.Context, m mutation, dir, folder, binary string) error {
	text, err := os.ReadFile(filepath.Join(c.run.o.root, filepath.FromSlash(m.file)))
	if err != nil {
		return err
	}
	overlay, err := c.run.overlay(dir, map[string]string{m.file: string(m.apply(text))})
	if err != nil {
		return err
	}
	return c.run.compile(ctx, folder, binary, overlay)
}

// quickAndSlow returns the quick and the slow tests of one test folder.
func quickAndSlow(tests []reach, folder string) (quick, slowly []reach) {
	for _, t := range tests {
		switch {
		case t.folder != folder:
		case t.took < slow:
			quick = append(quick, t)
		default:
			slowly = append(slowly, t)
		}
	}
	return quick, slowly
}

// test runs tests of one folder against the mutant with a number, until one of them fails. speed is
// the index of their limit: 0 for quick tests, 1 for slow ones.
func (c *compiledMutants) test(ctx context.Context, dir, binary string, number, speed int, tests []reach) (verdict, string, error) {
	if len(tests) == 0 {
		return survived, "", nil
	}
	limit := c.limits[tests[0].folder][speed]
	names := make([]string, 0, len(tests))
	for _, t := range tests {
		names = append(names, t.test)
	}
	// -test.timeout ends the tests at the limit. A binary that does not obey it is killed later.
	limited, cancel := context.WithTimeout(ctx, limit+5*time.Second)
	defer cancel()
	out, err := c.run.commandIn(limited, surroundings{
		dir: filepath.Join(c.run.o.root, tests[0].folder), temp: filepath.Join(dir, "tmp"),
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

// culprit returns the first test that has failed. If there is none, it returns the text of the panic,
// or else the end of the output.
func culprit(out string) string {
	if m := regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`).FindStringSubmatch(out); m != nil {
		return m[1]
	}
	if m := regexp.MustCompile(`(?m)^(?:panic|fatal error): .*`).FindString(out); m != "" {
		return m
	}
	return strconv.Quote(out[max(0, len(out)-80):])
}
