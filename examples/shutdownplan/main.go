package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/command"
)

func main() {
	err := command.New(command.OpenStreams()).ExecuteContext(context.Background())
	var status command.ExitStatus
	switch {
	case errors.As(err, &status):
		os.Exit(int(status))
	case err != nil:
		fmt.Fprintln(os.Stderr, "shutdownplan: "+err.Error())
		os.Exit(1)
	}
}
