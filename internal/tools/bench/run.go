package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// grace is how long a program that was interrupted has to end.
	grace = 10 * time.Second
	// limit is how long one run of one benchmark may take.
	limit = 10 * time.Minute
)

// interrupt sends SIGINT and not SIGKILL, so that a test program can end the processes that it
// has started.
func interrupt(cmd *exec.Cmd) error { return cmd.Process.Signal(os.Interrupt) }

// runAll runs --count rounds with the benchmarks of all trees, and returns the results of each
// tree.
func runAll(ctx context.Context, o options, progress io.Writer, trees ...tree) ([]*results, error) {
	all := make([]*results, len(trees))
	for i := range trees {
		all[i] = newResults()
	}
	for round := range o.count {
		for i, turns := 0, turnsOf(trees); i < len(turns); i++ {
			turn := turns[i]
			fmt.Fprintf(progress, "\rround %d of %d, %3d%%: %-50s", round+1, o.count, 100*i/len(turns), turn.program.pkg+"."+strings.TrimPrefix(turn.benchmark, "Benchmark"))
			out, err := turn.program.run(ctx, turn.benchmark, o)
			if err != nil {
				fmt.Fprintln(progress)
				return nil, err
			}
			if err := all[turn.tree].read(turn.program.pkg, out); err != nil {
				return nil, err
			}
			if err := o.keepRaw(trees[turn.tree].name, out, round == 0 && i < len(trees)); err != nil {
				return nil, err
			}
		}
	}
	fmt.Fprintf(progress, "\r%-90s\r", "")
	return all, nil
}

// turn is one run of one benchmark.
type turn struct {
	tree      int // its index
	program   program
	benchmark string
}

// turnsOf returns the turns of a round: each benchmark of the first tree, followed by the same
// benchmark of the other trees.
func turnsOf(trees []tree) []turn {
	var turns []turn
	for _, p := range trees[0].programs {
		for _, benchmark := range p.benchmarks {
			turns = append(turns, turn{0, p, benchmark})
			for i, t := range trees[1:] {
				if other, ok := t.find(p.pkg, benchmark); ok {
					turns = append(turns, turn{i + 1, other, benchmark})
				}
			}
		}
	}
	return turns
}

// find returns the program of a tree that has a benchmark, and false if there is none.
func (t tree) find(pkg, benchmark string) (program, bool) {
	for _, p := range t.programs {
		for _, name := range p.benchmarks {
			if p.pkg == pkg && name == benchmark {
				return p, true
			}
		}
	}
	return program{}, false
}

// run runs one benchmark once and returns what the program prints.
func (p program) run(ctx context.Context, benchmark string, o options) (string, error) {
	args := []string{"-test.v", "-test.run", "^$", "-test.bench", "^" + benchmark + "$", "-test.benchtime", o.benchTime, "-test.timeout", limit.String()}
	if o.base != "" {
		args = append(args, "-test.skip", skipPlain)
	}
	return output(ctx, p.dir, p.path, args...)
}

// skipPlain is the value of -test.skip that leaves out the plain ways. The key "way" is in the
// first, second or third part of a name below the benchmark.
const skipPlain = "/way=(plain|floor)|/.*/way=(plain|floor)|/.*/.*/way=(plain|floor)"

// keepRaw appends results to the file of a tree in the folder --raw. fresh makes it begin with an
// empty file.
func (o options) keepRaw(name, out string, fresh bool) (err error) {
	if o.raw == "" {
		return nil
	}
	if err := os.MkdirAll(o.raw, 0o755); err != nil {
		return err
	}
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if fresh {
		flags |= os.O_TRUNC
	}
	file, err := os.OpenFile(filepath.Join(o.raw, name+".txt"), flags, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = io.WriteString(file, out)
	return err
}

// skipped returns the skipped benchmarks in the output of a run, with their reasons. The reason is
// in the line before "--- SKIP".
func skipped(out string) map[string]string {
	found := map[string]string{}
	var before string
	for line := range strings.Lines(out) {
		if name, isSkip := strings.CutPrefix(strings.TrimSpace(line), "--- SKIP: Benchmark"); isSkip {
			_, found[name], _ = strings.Cut(strings.TrimSpace(before), ": ")
		}
		before = line
	}
	return found
}
