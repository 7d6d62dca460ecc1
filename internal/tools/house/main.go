// Command house checks the rules of this repository that no linter knows, and prints what is wrong.
//
//	go run ./house --root ../..
//
// It checks
//
//   - top folder: it has no other entries than [topLevel] lists;
//   - links: every relative link of a Markdown file leads to a file and a heading that exist;
//   - commands: every make command in pages, in workflows and in .ci/run names a target of the
//     Makefile, and variables that it reads;
//   - workflows: they pin their actions, have no permission but to read, and set timeouts; actionlint
//     does not ask for that;
//   - updates: .github/dependabot.yml names every folder with a go.mod, and no other;
//   - comments: each exported field, method of an interface, and constant or variable of a group has one;
//   - names in comments: each name in square brackets in the comment of a declaration is declared.
//
// The exit status is 1 if anything is wrong, and if a check finds nothing to check. It needs git, and
// no network.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := house(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "house: %v\n", err)
		os.Exit(1)
	}
}

// check is one of the program's checks. run returns how many things it has looked at, and the problems, each of
// which begins with the name of a file. It returns an error if it cannot read the repository.
type check struct {
	name string
	run  func(repository) (checked int, problems []string, err error)
}

// house runs the program: it prints the problems of all checks to stdout.
func house(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("house", flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", ".", "the repository")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	repo, err := open(ctx, *root)
	if err != nil {
		return err
	}
	found := 0
	for _, check := range []check{
		{"top folder", checkTopLevel},
		{"links", checkLinks},
		{"commands", checkCommands},
		{"workflows", checkWorkflows},
		{"updates", checkDependabot},
		{"comments", checkComments},
		{"names in comments", checkDocLinks},
	} {
		checked, problems, err := check.run(repo)
		if err != nil {
			return fmt.Errorf("%s: %w", check.name, err)
		}
		if checked == 0 {
			problems = append(problems, check.name+": there is nothing to check")
		}
		for _, problem := range problems {
			fmt.Fprintln(stdout, problem)
		}
		found += len(problems)
	}
	if found > 0 {
		return fmt.Errorf("%d problems", found)
	}
	return nil
}

// topLevel returns the names that the top folder may have, besides names that begin with a dot. A
// visitor of the repository should see the packages there, and no tools.
func topLevel() []string {
	return []string{
		"LICENSE", "Makefile", "README.md", "go.mod", "go.sum",
		"examples", "graceperiod", "internal", "lifecycle", "metrics", "shutdown", "validation",
	}
}

// checkTopLevel checks that the top folder has no other entries than topLevel lists.
func checkTopLevel(repo repository) (checked int, problems []string, err error) {
	for _, name := range repo.files {
		top, _, _ := strings.Cut(name, "/")
		isAllowed := strings.HasPrefix(top, ".") || slices.Contains(topLevel(), top)
		problem := top + ": does not belong into the top folder"
		if !isAllowed && !slices.Contains(problems, problem) {
			problems = append(problems, problem)
		}
	}
	return len(repo.files), problems, nil
}
