//go:build linux

package logind_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/logind"
)

// An agent drains its pods when logind announces a shutdown. Here the bus does not exist, which
// Available reports before the manager starts.
func Example() {
	run := func(ctx context.Context, options logind.Options) error {
		source, err := logind.New(options)
		if err != nil {
			return err
		}
		if err := source.Available(ctx); err != nil {
			return err
		}
		manager, err := shutdown.NewManager(shutdown.Options{
			ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return nil }, nil),
			Killer: shutdown.PodKillerFunc(func(context.Context, *v1.Pod, shutdown.KillRequest) (shutdown.KillResult, error) {
				return shutdown.KillResult{}, nil
			}),
			Source: source,
		})
		if err != nil {
			return err
		}
		return manager.Run(ctx)
	}
	err := run(context.Background(), logind.Options{Address: "unix:path=/nowhere/system_bus_socket"})
	fmt.Println("no such bus:", errors.Is(err, os.ErrNotExist))
	// Output: no such bus: true
}

// New refuses a name that logind would not read as a drop-in.
func ExampleNew() {
	_, err := logind.New(logind.Options{DropInName: "99-agent"})
	fmt.Println(err)
	// Output: logind: DropInName "99-agent": must be a file name that ends with .conf, logind reads no other
}

// An agent may also run on hosts without logind.
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

// An uninstallation removes the drop-in. Without one it does nothing.
func ExampleSource_RemoveDropIn() {
	root, err := os.MkdirTemp("", "host")
	if err != nil {
		fmt.Println(err)
		return
	}
	source, err := logind.New(logind.Options{HostRoot: root})
	if err == nil {
		err = source.RemoveDropIn(context.Background())
	}
	fmt.Println(errors.Join(err, os.RemoveAll(root)))
	// Output: <nil>
}
