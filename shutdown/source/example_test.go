package source_test

import (
	"context"
	"fmt"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// A program puts its work away before the machine goes down. On a machine with systemd Source is that of package logind.
func ExampleHolder() {
	ctx, cancel := context.WithCancel(context.Background())
	host := &shutdowntest.Host{}
	holder := source.Holder{Source: host, Delay: 30 * time.Second, OnShutdown: func(_ context.Context, event source.Event) {
		fmt.Println("put the work away before", event.Kind)
		cancel() // a real program runs on: the shutdown may be cancelled
	}}
	host.SetPending(&source.Event{Kind: source.KindReboot})
	err := holder.Run(ctx)
	fmt.Println(host.Held(), "locks are held, error:", err)
	// Output:
	// put the work away before reboot
	// 0 locks are held, error: <nil>
}
