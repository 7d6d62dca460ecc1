//go:build linux

package logind_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/logind"
)

// What logind does not read is refused before anything is written.
func ExampleNew() {
	_, err := logind.New(logind.Options{DropInName: "99-agent"})
	fmt.Println(err)
	// Output: logind: DropInName "99-agent": must be a file name that ends with .conf, logind reads no other
}

// An agent takes logind where there is one, and does without where there is not.
func ExampleSource_Available() {
	source, err := logind.New(logind.Options{Address: "unix:path=/nowhere/system_bus_socket"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := source.Available(context.Background()); err != nil {
		fmt.Println("no logind here; a shutdown has to be triggered")
	}
	// Output: no logind here; a shutdown has to be triggered
}

// A session is of use without a manager too: this one holds the host until what
// is to be done at its shutdown is done.
func ExampleSource_Connect() {
	_ = func(ctx context.Context, source *logind.Source, drain func(shutdown.Event)) (err error) {
		session, err := source.Connect(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, session.Close()) }()
		lock, err := session.Inhibit(ctx)
		if err != nil {
			return err
		}
		for event := range session.Events() {
			if !event.Cancelled {
				drain(event)
				return lock.Close() // the host goes on
			}
		}
		return lock.Close() // the host is lost
	}
}
