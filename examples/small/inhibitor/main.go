// Command inhibitor delays the shutdown of a host with systemd until a command has run.
//
//	inhibitor sh -c 'put-the-work-away'
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/exec"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/logind"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("usage: inhibitor COMMAND [ARGUMENT...]")
	}
	if err := run(context.Background(), os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, command []string) (err error) {
	host, err := logind.New(logind.Options{Who: "inhibitor", Why: "a command runs before the shutdown"})
	if err != nil {
		return err
	}
	session, err := host.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	if _, err := session.RequestDelay(ctx, 30*time.Second); err != nil && !errors.As(err, new(*source.DelayCappedError)) {
		return err
	}
	lock, err := session.Inhibit(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }() // the host goes on
	for event := range session.Events() {
		if !event.Cancelled {
			return exec.CommandContext(ctx, command[0], command[1:]...).Run()
		}
	}
	return errors.New("the connection to logind is lost")
}
