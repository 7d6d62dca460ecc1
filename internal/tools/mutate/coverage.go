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

// slow is how long a test takes at least to be a slow one. Slow tests run only for mutants that no
// quick test has killed.
const slow = 500 * time.Millisecond

// reach has the blocks of the mutated package that one test runs.
type reach struct {
	folder string // of the package of the test
	test   string
	took   time.Duration
	blocks map[block]bool
}

// block is a block of a coverage profile: its statements run together.
type block struct {
	file                                 string // without its folder
	startLine, startCol, endLine, endCol int
}

func (b block) contains(line, column int) bool {
	return (b.startLine < line || b.startLine == line && b.startCol <= column) &&
		(line < b.endLine || line == b.endLine && column <= b.endCol)
}

// size returns a number that is smaller for the inner one of two nested blocks.
func (b block) size() int { return (b.endLine-b.startLine)*1000 + b.endCol - b.startCol }

// coverage has what the tests in the test folders of a mutated package reach.
type coverage struct {
	blocks []block // all blocks of the package
	tests  []reach
}

// reaching returns the tests that reach a mutation, in the order of the test folders. All tests reach
// a mutation outside of functions, for example of a constant.
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

// measure runs every test in the test folders by itself and returns what each reaches.
func (r *run) measure(ctx context.Context, pkg mutated) (coverage, error) {
	var c coverage
	seen := map[block]bool{}
	for _, folder := range pkg.testFolders {
		binary := filepath.Join(r.temp, "cover.test")
		if _, err := r.command(ctx, r.o.root, "go", "test", "-c", "-vet=off", "-covermode=set", "-coverpkg=./"+pkg.folder, "-o", binary, "./"+folder); err != nil {
			return c, err
		}
		dir := filepath.Join(r.o.root, folder)
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
				return c, fmt.Errorf("%s of %s fails without a mutation: %w\n%s", test, folder, err, out)
			}
			t := reach{folder: folder, test: test, took: time.Since(began), blocks: map[block]bool{}}
			profiles, err := cover.ParseProfiles(profile)
			if err != nil {
				return c, err
			}
			for _, p := range profiles {
				for _, b := range p.Blocks {
					reached := block{filepath.Base(p.FileName), b.StartLine, b.StartCol, b.EndLine, b.EndCol}
					seen[reached] = true
					if b.Count > 0 {
						t.blocks[reached] = true
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

// exactly returns a regular expression for -test.run that matches these tests and no others.
func exactly(tests ...string) string {
	quoted := make([]string, 0, len(tests))
	for _, t := range tests {
		quoted = append(quoted, regexp.QuoteMeta(t))
	}
	return "^(" + strings.Join(quoted, "|") + ")$"
}
