package shutdown_test

import (
	"context"
	"fmt"
	"os"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// A program other than the agent shows the report of the last shutdown.
func ExampleStoredReport() {
	dir, err := os.MkdirTemp("", "state")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { fmt.Println(os.RemoveAll(dir)) }()
	_, found, err := shutdown.StoredReport(dir)
	fmt.Println(found, err)

	ctx, stop := context.WithCancel(context.Background())
	opts := exampleOptions()
	opts.StateDir = dir
	opts.Source = &shutdowntest.Host{}
	opts.Killer = &shutdowntest.Killer{}
	opts.OnReport = func(context.Context, shutdown.Report) { stop() }
	manager, err := shutdown.NewManager(opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		<-manager.Ready()
		if err := manager.Trigger(source.Event{Kind: source.KindPoweroff, Origin: "ups"}); err != nil {
			fmt.Println(err)
		}
	}()
	fmt.Println(manager.Run(ctx))

	report, found, err := shutdown.StoredReport(dir)
	fmt.Println(report.Kind, report.Origin, len(report.Pods), found, err)
	// Output:
	// false <nil>
	// <nil>
	// poweroff ups 2 true <nil>
	// <nil>
}
