package inspect

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
)

// complete lets a shell complete the values of flags, and an error of a flag say where all are
// listed. formats are the values of -o.
func complete(c *cobra.Command, formats []string) {
	values := map[string][]string{
		"agent": nodeplan.Agents(), "fail-on": {"any", "never", "no-lock", "5%", "10"}, "hooks": {"publish", "readiness", "unmount", "statuses", "none"},
		"limit": {limitLogind}, "output": formats, "pods": {podsNone},
	}
	var errs []error
	for name, words := range values {
		if c.Flags().Lookup(name) == nil {
			continue
		}
		directive := cobra.ShellCompDirectiveNoFileComp
		if name == "pods" {
			directive = cobra.ShellCompDirectiveDefault // a file is a value too
		}
		errs = append(errs, c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, directive)))
	}
	for _, name := range []string{"config-dir", "root"} {
		if c.Flags().Lookup(name) != nil {
			errs = append(errs, c.MarkFlagDirname(name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		panic(err)
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w; %s --help lists all flags and how they are written", err, c.CommandPath())
	})
}
