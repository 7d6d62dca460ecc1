package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/command"
)

func main() { os.Exit(run()) }

// run runs the command and returns the exit status.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := command.New(command.OpenStreams()).ExecuteContext(ctx)
	var status command.ExitStatus
	switch {
	case errors.As(err, &status):
		return int(status)
	case err != nil:
		fmt.Fprintln(os.Stderr, "shutdownplan: "+err.Error())
		return 1
	}
	return 0
}
