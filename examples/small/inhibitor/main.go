// Command inhibitor delays the shutdown of a machine with systemd until a command has run.
//
//	inhibitor sh -c 'put-the-work-away'
package main

import (
	"context"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/inhibitor"
	"github.com/kubegrace/kubegrace/shutdown/logind"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("usage: inhibitor COMMAND [ARGUMENT...]")
	}
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

// run holds the inhibitor lock until SIGTERM, and runs the command when the machine shuts down.
func run(command []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	host, err := logind.New(logind.Options{Who: "inhibitor", Why: "a command runs before the shutdown"})
	if err != nil {
		return err
	}
	holder := inhibitor.Holder{Source: host, Delay: 30 * time.Second, OnShutdown: func(ctx context.Context, _ source.Event) {
		output, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
		log.Printf("%s (error: %v)", output, err)
	}}
	return holder.Run(ctx)
}
