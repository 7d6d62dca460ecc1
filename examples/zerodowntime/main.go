// Command zerodowntime measures what users notice of a rolling update, with and without a
// preStop sleep: real requests to real processes behind a real proxy that learns late of
// the pods that end.
//
//	cd examples
//	go run ./zerodowntime
//
// README.md beside this file shows what it prints.
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
		os.Exit(130) // as a shell says of a program that Ctrl-C has ended
	}
	os.Exit(1)
}
