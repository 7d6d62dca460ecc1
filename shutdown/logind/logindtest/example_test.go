//go:build linux

package logindtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/logind"
	"github.com/kubegrace/kubegrace/shutdown/logind/logindtest"
)

// A host that announces a shutdown waits until the inhibitor lock is closed. In a test, use
// [logindtest.StartBroker].
func ExampleNewBroker() {
	run := func(ctx context.Context) (err error) {
		broker, err := logindtest.NewBroker()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, broker.Close()) }()
		broker.SetLimit(30 * time.Second)
		source, err := logind.New(logind.Options{Address: broker.Address, Who: "agent"})
		if err != nil {
			return err
		}
		session, err := source.Connect(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, session.Close()) }()
		lock, err := session.Inhibit(ctx)
		if err != nil {
			return err
		}
		broker.Prepare(true) // announces a shutdown
		event := <-session.Events()
		held := broker.Held()
		fmt.Printf("within %v, held by %s\n", time.Until(event.Deadline).Round(10*time.Second), held[0].Who)
		err = lock.Close()
		<-held[0].Released
		return err
	}
	fmt.Println(run(context.Background()))
	// Output:
	// within 30s, held by agent
	// <nil>
}

// An agent that needs more time writes a drop-in and reloads logind. The scripted logind reads no
// files: OnHangUp says what the reload does.
func ExampleBroker_OnHangUp() {
	run := func(ctx context.Context) (err error) {
		broker, err := logindtest.NewBroker()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, broker.Close()) }()
		broker.OnHangUp(func() { broker.SetLimit(time.Minute) })
		root, err := os.MkdirTemp("", "host")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
		source, err := logind.New(logind.Options{Address: broker.Address, HostRoot: root})
		if err != nil {
			return err
		}
		session, err := source.Connect(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, session.Close()) }()
		granted, err := session.RequestDelay(ctx, 45*time.Second)
		fmt.Println(granted)
		return err
	}
	fmt.Println(run(context.Background()))
	// Output:
	// 1m0s
	// <nil>
}
