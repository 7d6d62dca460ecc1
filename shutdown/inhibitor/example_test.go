package inhibitor_test

import (
	"context"
	"fmt"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/inhibitor"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// A program saves its work before the machine shuts down. On a machine with systemd, Source is that of package logind.
func ExampleHolder() {
	ctx, cancel := context.WithCancel(context.Background())
	host := &shutdowntest.Host{}
	holder := inhibitor.Holder{Source: host, Delay: 30 * time.Second, OnShutdown: func(_ context.Context, event source.Event) {
		fmt.Println("save the work before", event.Kind)
		cancel() // a real program keeps running, because the shutdown may be cancelled
	}}
	host.SetPending(&source.Event{Kind: source.KindReboot})
	err := holder.Run(ctx)
	fmt.Println(host.Held(), "locks are held, error:", err)
	// Output:
	// save the work before reboot
	// 0 locks are held, error: <nil>
}
