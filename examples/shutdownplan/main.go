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
	switch {
	case errors.Is(err, command.ErrCutShort):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "shutdownplan: "+err.Error())
		os.Exit(1)
	}
}
