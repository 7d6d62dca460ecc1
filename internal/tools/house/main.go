package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/kubegrace/kubegrace/internal/tools/cli"
)

func main() { cli.Main("house", house) }

// check checks a repository. Each problem that it returns begins with the name of a file. It returns
// an error if it cannot read the repository.
type check func(repository) (problems []string, err error)

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
	for _, check := range []check{checkNames, checkIdentifiers, checkPages, checkFigures, checkMeasurements, checkPictures, checkComments, checkCommentNames, checkDocLinks, checkWorkflows, checkDependabot, checkIssueForms} {
		problems, err := check(repo)
		if err != nil {
			return err
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
