package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/kubegrace/kubegrace/internal/tools/cli"
)

func main() { cli.Main("release", release) }

// release runs the program.
func release(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return errors.New("one of check and apidiff must be given")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", ".", "the repository")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	repo, err := open(ctx, *root)
	if err != nil {
		return err
	}
	switch {
	case args[0] == "apidiff" && flags.NArg() == 0:
		return repo.apidiff(ctx, stdout)
	case args[0] == "check" && flags.NArg() == 1:
		return repo.check(ctx, flags.Arg(0), stdout)
	}
	return fmt.Errorf("%s: either check VERSION or apidiff must be given", args[0])
}
