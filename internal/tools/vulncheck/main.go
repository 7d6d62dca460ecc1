package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/kubegrace/kubegrace/internal/tools/cli"
)

func main() { cli.Main("vulncheck", vulncheck) }

// vulncheck runs the program: it examines the modules that the arguments name.
func vulncheck(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("vulncheck", flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", ".", "the repository")
	db := flags.String("db", "", "URL of the vulnerability database, https, http or file")
	tags := flags.String("tags", "", "comma-separated build tags")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("no modules are named")
	}
	err := reach(ctx, *db)
	if errors.As(err, new(*unreachableError)) {
		fmt.Fprintf(stdout, "\n*** vulncheck SKIPPED: nothing was examined. ***\n%v\nSet GOVULNDB to a database that can be reached; file:///FOLDER will do.\n\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	scan := scanner{root: *root, db: *db, tags: *tags, stdout: stdout, stderr: stderr}
	var errs []error
	for _, module := range flags.Args() {
		fmt.Fprintf(stdout, "== vulncheck: module %s\n", module)
		if err := scan.module(ctx, module); err != nil {
			errs = append(errs, fmt.Errorf("module %s: %w", module, err))
		}
	}
	return errors.Join(errs...)
}
