package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/inspect"
)

func (c commands) newStatus() *cobra.Command {
	command := inspect.NewStatus(c.streams)
	run := command.RunE
	command.RunE = func(command *cobra.Command, args []string) error {
		ctx, cancel := context.WithCancel(command.Context())
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			select {
			case <-c.signals:
				cancel() // --every ends without an error
			case <-ctx.Done():
			}
		}()
		command.SetContext(ctx)
		err := run(command, args)
		cancel()
		<-watched
		return err
	}
	return command
}
