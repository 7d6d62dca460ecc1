package command

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/nodeplan"
	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/output"
)

// addCompletion lets a shell complete the values of flags, and an error of a flag say where all are
// listed.
func addCompletion(c *cobra.Command) error {
	values := map[string][]string{
		"agent": nodeplan.Agents(), "fail-on": {"any", "never", "no-lock", "5%", "10"}, "hooks": {"publish", "readiness", "unmount", "statuses", "none"},
		"limit": {limitLogind}, "output": output.Formats(), "pods": {podsNone},
	}
	if c.HasParent() {
		values["output"] = output.MachineFormats()
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
	for name := range slices.Values([]string{"config-dir", "root"}) {
		if c.Flags().Lookup(name) != nil {
			errs = append(errs, c.MarkFlagDirname(name))
		}
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w; %s --help lists all flags and how they are written", err, c.CommandPath())
	})
	return errors.Join(errs...)
}
