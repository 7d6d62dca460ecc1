package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/inspect"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/output"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/view"
	"github.com/kubegrace/kubegrace/shutdown"
)

// newReport makes kubegrace-node report.
func newReport() *cobra.Command {
	var socket, stateDir, format string
	command := &cobra.Command{
		Use:   "report",
		Short: "Shows how the pods ended in the last shutdown, or in the one that is under way",
		Long: `report shows the shutdown that is under way, if the agent that does it can be asked
on its socket, or else the last one, as it was stored in the state folder: also
after a reboot, and without an agent. With --state-dir and without --socket no agent
is asked. -o html is a page that shows what was planned and what has happened.`,
		Args: cobra.NoArgs,
	}
	inspect.AddSocket(command.Flags(), &socket)
	command.Flags().StringVar(&stateDir, "state-dir", defaultStateDir, "`folder` that keeps the state of a shutdown, as the agent was given it")
	inspect.AddFormat(command.Flags(), &format, output.Table, output.JSON, output.YAML, output.HTML)
	command.RunE = func(command *cobra.Command, _ []string) error {
		if command.Flags().Changed("state-dir") && !command.Flags().Changed("socket") {
			socket = "" // the report of that folder is wanted, whatever agent runs here
		}
		report, err := readReport(command.Context(), socket, stateDir)
		switch {
		case err != nil:
			return err
		case format == output.HTML:
			return view.Page(command.OutOrStdout(), report.Shutdown, stateDir)
		default:
			return output.WriteReport(format, command.OutOrStdout(), report)
		}
	}
	return command
}

// readReport requests the report from the running agent. If no agent answers, or it has no report, or socket is "",
// the report is read from the state folder.
func readReport(ctx context.Context, socket, stateDir string) (report api.Report, err error) {
	requestErr := errors.New("no agent was asked")
	if socket != "" {
		requestErr = api.Request(ctx, socket, http.MethodGet, "/report", &report)
		if requestErr == nil {
			return report, nil
		}
	}
	stored, found, err := shutdown.StoredReport(stateDir)
	switch {
	case err != nil:
		return report, fmt.Errorf("--state-dir: %w", err)
	case found:
		return api.ReportOf(stored), nil
	case errors.Is(requestErr, api.ErrRefused): // the agent has said why it has none
		return report, requestErr
	}
	return report, fmt.Errorf("there is no report of a shutdown in %s, and %w", stateDir, requestErr)
}
