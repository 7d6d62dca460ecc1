package command

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/inspect"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/output"
)

// newDrain makes kubegrace-node drain, which the running agent carries out.
func newDrain() *cobra.Command {
	var socket, format string
	command := &cobra.Command{
		Use:   "drain",
		Short: "Ends the pods of this machine, which stays up, until undrain",
		Long: `drain has the running agent stop what would start pods again (--stop-unit), and then
the pods, in order and with their grace periods, as for a shutdown of the machine. It
waits until they have ended, and shows how each one ended. kubegrace-node undrain withdraws
the drain; so does a reboot. Ctrl-C ends only the waiting: the pods are stopped all the same.
It exits with 1 if a pod was not stopped, or if a --stop-unit still runs.

To move the pods to other nodes first, use kubectl drain.`,
		Args: cobra.NoArgs,
	}
	inspect.AddSocket(command.Flags(), &socket)
	inspect.AddFormat(command.Flags(), &format, output.Table, output.JSON, output.YAML)
	command.RunE = func(command *cobra.Command, _ []string) error {
		var report api.Report
		if err := api.Request(command.Context(), socket, http.MethodPost, "/drain", &report); err != nil {
			return err
		}
		return errors.Join(output.WriteReport(format, command.OutOrStdout(), report), report.Err())
	}
	return command
}

// newUndrain makes kubegrace-node undrain, which the running agent carries out.
func newUndrain() *cobra.Command {
	var socket string
	command := &cobra.Command{
		Use:   "undrain",
		Short: "Withdraws a drain: what was stopped is started again",
		Long: `undrain has the running agent start again what drain has stopped (--stop-unit), which
then starts the pods. It returns when that has been started. Without a --stop-unit
whoever has started the pods has to start them again.`,
		Args: cobra.NoArgs,
	}
	inspect.AddSocket(command.Flags(), &socket)
	command.RunE = func(command *cobra.Command, _ []string) error {
		if err := api.Request(command.Context(), socket, http.MethodPost, "/undrain", &api.Meta{}); err != nil {
			return err
		}
		_, err := fmt.Fprintln(command.OutOrStdout(), "The drain is withdrawn. The agent holds the inhibitor lock again.")
		return err
	}
	return command
}
