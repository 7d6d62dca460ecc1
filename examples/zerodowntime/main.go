package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/command"
)

func main() {
	err := command.New(os.Stdout, os.Stderr).ExecuteContext(context.Background())
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "zerodowntime: "+strings.ReplaceAll(err.Error(), "\n", "; "))
	if errors.Is(err, command.ErrInterrupted) {
		os.Exit(130) // the status of a program that SIGINT has ended: 128 + 2
	}
	os.Exit(1)
}
