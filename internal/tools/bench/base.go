package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// compareCommits runs the benchmarks of this tree and of the commit of --base in turn, and
// prints one table with both.
func compareCommits(ctx context.Context, o options, folder string, stdout, stderr io.Writer) (err error) {
	began := time.Now()
	old := filepath.Join(folder, "base")
	commit, err := output(ctx, o.root, "git", "rev-parse", "--verify", "--short", o.base+"^{commit}")
	if err != nil {
		return err
	}
	if _, err := output(ctx, o.root, "git", "worktree", "add", "--detach", old, o.base); err != nil {
		return err
	}
	defer func() {
		_, removeErr := output(context.WithoutCancel(ctx), o.root, "git", "worktree", "remove", "--force", old)
		err = errors.Join(err, removeErr)
	}()
	here, err := buildInto(ctx, o, o.root, filepath.Join(folder, "here-programs"), stderr)
	if err != nil {
		return err
	}
	base, err := buildInto(ctx, o, old, filepath.Join(folder, "base-programs"), stderr)
	if err != nil {
		return err
	}
	base.name = "base"
	results, err := runAll(ctx, o, stderr, here, base)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, o.describe(results[0].cpu, time.Since(began)))
	fmt.Fprintf(stdout, "Medians, with the interval that has the true one in 95 of 100 cases. A ratio is this tree to\n%s (%s): below 1 this tree takes less. What is marked with ~ may be chance.\n\n", o.base, strings.TrimSpace(commit))
	left, right := side{o.base, results[1], ourWay}, side{"here", results[0], ourWay}
	if err := printTable(stdout, left, right); err != nil {
		return err
	}
	for _, row := range right.of.names {
		if right.has(row) && !left.has(row) {
			fmt.Fprintf(stdout, "\n%s is not in %s.", row, o.base)
		}
	}
	printSkipped(stdout, results[0])
	return nil
}

// buildInto makes a folder and builds the test programs of a tree into it.
func buildInto(ctx context.Context, o options, root, folder string, progress io.Writer) (tree, error) {
	if err := os.Mkdir(folder, 0o755); err != nil {
		return tree{}, err
	}
	return build(ctx, o, root, folder, progress)
}
