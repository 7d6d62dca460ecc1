package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/kubegrace/kubegrace/internal/tools/cli"
)

func main() { cli.Main("bench", bench) }

// options are the flags and the arguments.
type options struct {
	root      string
	modules   []string
	only      *regexp.Regexp
	count     int
	benchTime string
	base      string // the commit to compare with; "": the plain ways
	raw       string // the folder for the results; "": they are not kept
}

// parse reads the flags and the arguments.
func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.root, "root", ".", "the repository")
	flags.IntVar(&o.count, "count", 6, "how often each benchmark is run; with less than six there are no confidence intervals, with less than four all may be chance")
	flags.StringVar(&o.benchTime, "benchtime", "200ms", "how long each run of a benchmark is, as for go test")
	flags.StringVar(&o.base, "base", "", "compare with this commit, instead of with the plain ways")
	flags.StringVar(&o.raw, "raw", "", "a folder for the results as benchstat reads them (default: they are not kept)")
	only := flags.String("only", "", "regular expression of the benchmarks to run, for example 'podkiller|logind.Start' (default: all)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("--only: %w", err)
	}
	if o.count < 1 {
		return o, errors.New("--count: must be at least 1")
	}
	if o.modules = flags.Args(); len(o.modules) == 0 {
		return o, errors.New("no modules are given")
	}
	return o, nil
}

// bench runs the program. The table goes to stdout, everything else to stderr.
func bench(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	began := time.Now()
	folder, err := os.MkdirTemp("", "kubegrace-bench-")
	if err != nil {
		return fmt.Errorf("failed to make a folder for the test programs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if o.base != "" {
		return compareCommits(ctx, o, folder, stdout, stderr)
	}
	here, err := build(ctx, o, o.root, folder, stderr)
	if err != nil {
		return err
	}
	results, err := runAll(ctx, o, stderr, here)
	if err != nil {
		return err
	}
	return report(stdout, results[0], o.describe(results[0].cpu, time.Since(began)))
}
