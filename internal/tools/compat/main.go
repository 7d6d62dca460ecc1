package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/kubegrace/kubegrace/internal/tools/cli"
)

func main() { cli.Main("compat", compat) }

// compat runs the program: it tests the minors that the arguments choose. It prints their table to
// stdout and everything else to stderr.
func compat(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("compat", flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", ".", "the repository")
	oldestGo := flags.String("oldest-go", "", "the Go toolchain up to "+minorName(lastOfOldestGo)+", as in GOTOOLCHAIN, for example go1.25.14")
	only := flags.String("only", "", "comma-separated minors to test: oldest, floor, newest, or as in "+minorName(floor)+" (default: all)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *oldestGo == "" {
		return errors.New("--oldest-go: must be set")
	}
	minors, err := chooseMinors(*only)
	if err != nil {
		return err
	}

	folder, err := os.MkdirTemp("", "kubegrace-compat-")
	if err != nil {
		return fmt.Errorf("failed to make a folder for the copy: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	c, err := prepare(ctx, *root, folder, *oldestGo, stderr)
	if err != nil {
		return err
	}
	return c.testAll(ctx, minors, stdout)
}
