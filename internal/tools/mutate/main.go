package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/kubegrace/kubegrace/internal/tools/cli"
)

func main() { cli.Main("mutate", mutate) }

// options are the values of the flags.
type options struct {
	root      string
	only      string
	match     *regexp.Regexp
	skip      *regexp.Regexp
	sample    int
	seed      uint64
	parallel  int
	timeout   time.Duration
	survivors string
	json      string
	list      bool
	quick     bool
}

// parse reads the flags.
func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	var match, skip string
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.root, "root", ".", "the repository")
	flags.StringVar(&o.only, "only", "", "comma-separated packages to mutate, by folder, or a folder and /... (default: all)")
	flags.StringVar(&match, "match", "", "mutate only where this regular expression matches, in \"file function: was -> is\"")
	flags.StringVar(&skip, "skip", "", "leave out the tests whose name this regular expression matches")
	flags.IntVar(&o.sample, "sample", 0, "so many mutants, chosen at random (default: all)")
	flags.Uint64Var(&o.seed, "seed", 1, "the seed of the sample")
	flags.IntVar(&o.parallel, "parallel", 1, "so many mutants at a time")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long the tests of a mutant may take, beside three times what they take without one")
	flags.StringVar(&o.survivors, "survivors", "internal/tools/mutate/survivors.yaml", "the accepted survivors; not below the current folder but below --root")
	flags.StringVar(&o.json, "json", "", "write a line of JSON for each mutant to this file")
	flags.BoolVar(&o.quick, "quick", false, "leave out the tests that take half a second or more")
	flags.BoolVar(&o.list, "list", false, "print the mutations and run nothing")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.parallel < 1 {
		return o, errors.New("--parallel: must be at least 1")
	}
	var err error
	if o.match, err = expression(match); err != nil {
		return o, fmt.Errorf("--match: %w", err)
	}
	if o.skip, err = expression(skip); err != nil {
		return o, fmt.Errorf("--skip: %w", err)
	}
	return o, nil
}

// expression compiles a regular expression; the empty one gives nil.
func expression(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no expression, no error
	}
	return regexp.Compile(text)
}

// mutate runs the program.
func mutate(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	packages, err := choosePackages(o.only)
	if err != nil {
		return err
	}
	r, err := newRun(o, stdout, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	return r.mutateAll(ctx, packages)
}
