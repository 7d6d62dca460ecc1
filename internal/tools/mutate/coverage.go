package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/cover"
)

// slow is from when on a test is run only for mutants that the others did not kill.
const slow = 500 * time.Millisecond

// reach is what one test of one package reaches in the mutated package.
type reach struct {
	judge  string // the folder of the test's package
	test   string
	took   time.Duration
	blocks map[block]bool
}

// block is a piece of source that is run as a whole.
type block struct {
	file                                 string // without its folder
	startLine, startCol, endLine, endCol int
}

func (b block) contains(line, column int) bool {
	return (b.startLine < line || b.startLine == line && b.startCol <= column) &&
		(line < b.endLine || line == b.endLine && column <= b.endCol)
}

// size compares blocks of which one contains the other.
func (b block) size() int { return (b.endLine-b.startLine)*1000 + b.endCol - b.startCol }

// coverage is what the tests of a mutated package's judges reach.
type coverage struct {
	blocks []block // all blocks of the package
	tests  []reach
}

// reaching gives the tests that reach a mutation: by package, in the order of the judges. What no
// block contains, a constant for one, is reached by all.
func (c coverage) reaching(m mutation) []reach {
	var in *block
	for _, b := range c.blocks {
		if b.file == filepath.Base(m.file) && b.contains(m.at.Line, m.at.Column) && (in == nil || b.size() < in.size()) {
			in = &b
		}
	}
	if in == nil {
		if m.function != "-" {
			return nil
		}
		return c.tests
	}
	var reaching []reach
	for _, t := range c.tests {
		if t.blocks[*in] {
			reaching = append(reaching, t)
		}
	}
	return reaching
}

// measure runs every test of the judges by itself.
func (r *run) measure(ctx context.Context, pkg mutated) (coverage, error) {
	var c coverage
	seen := map[block]bool{}
	for _, judge := range pkg.judges {
		binary := filepath.Join(r.temp, "cover.test")
		if _, err := r.command(ctx, r.o.root, "go", "test", "-c", "-vet=off", "-covermode=set", "-coverpkg=./"+pkg.folder, "-o", binary, "./"+judge); err != nil {
			return c, err
		}
		dir := filepath.Join(r.o.root, judge)
		listed, err := r.command(ctx, dir, binary, "-test.list", ".")
		if err != nil {
			return c, err
		}
		for test := range strings.FieldsSeq(listed) {
			if strings.HasPrefix(test, "Benchmark") || r.o.skip != nil && r.o.skip.MatchString(test) {
				continue
			}
			profile := filepath.Join(r.temp, "cover.out")
			began := time.Now()
			if out, err := r.command(ctx, dir, binary, "-test.run", exactly(test), "-test.timeout", "5m", "-test.coverprofile", profile); err != nil {
				return c, fmt.Errorf("%s of %s fails without a mutation: %w\n%s", test, judge, err, out)
			}
			t := reach{judge: judge, test: test, took: time.Since(began), blocks: map[block]bool{}}
			profiles, err := cover.ParseProfiles(profile)
			if err != nil {
				return c, err
			}
			for _, p := range profiles {
				for _, b := range p.Blocks {
					b1 := block{filepath.Base(p.FileName), b.StartLine, b.StartCol, b.EndLine, b.EndCol}
					seen[b1] = true
					if b.Count > 0 {
						t.blocks[b1] = true
					}
				}
			}
			c.tests = append(c.tests, t)
		}
	}
	for b := range seen {
		c.blocks = append(c.blocks, b)
	}
	slices.SortFunc(c.blocks, func(a, b block) int { return cmp.Or(cmp.Compare(a.file, b.file), a.startLine-b.startLine) })
	return c, nil
}

// exactly is a regular expression for -test.run that matches these tests.
func exactly(tests ...string) string {
	quoted := make([]string, 0, len(tests))
	for _, t := range tests {
		quoted = append(quoted, regexp.QuoteMeta(t))
	}
	return "^(" + strings.Join(quoted, "|") + ")$"
}
