package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/kubegrace/kubegrace/internal/tools/cli"
)

func main() { cli.Main("patches", patches) }

// patches runs the program: it checks the modules that the arguments name.
func patches(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("patches", flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", ".", "the repository")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("no modules are named")
	}
	modules := make([]module, 0, flags.NArg())
	for _, name := range flags.Args() {
		m, err := readModule(*root, name)
		if err != nil {
			return err
		}
		modules = append(modules, m)
	}
	proxy, err := askProxy(ctx, modules[0].folder, modules)
	if err != nil {
		return err
	}
	if len(proxy.versions) == 0 && len(proxy.failed) > 0 {
		fmt.Fprintf(stdout, "\n*** patches SKIPPED: nothing was compared. ***\nThe module proxy cannot be reached: %s\n\n", proxy.anyFailure())
		return nil
	}
	behind, compared := 0, 0
	for _, m := range modules {
		for _, required := range m.requires {
			f, err := proxy.compare(ctx, m, required)
			if err != nil {
				return err
			}
			for _, line := range f.lines {
				fmt.Fprintln(stdout, line)
			}
			compared++
			if f.behind {
				behind++
			}
		}
	}
	if behind > 0 {
		return fmt.Errorf("%d of %d direct dependencies are behind", behind, compared)
	}
	fmt.Fprintf(stdout, "patches: %d direct dependencies of %d modules were compared, none is behind\n", compared, len(modules))
	return nil
}
