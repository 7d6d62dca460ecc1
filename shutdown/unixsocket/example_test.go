package unixsocket_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/unixsocket"
)

// announce works like echo "poweroff 90" | socat -t 90 - UNIX-CONNECT:PATH: it sends the line and
// returns the reply when the agent has closed the connection.
func announce(path, line string) (reply string, err error) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if _, err := fmt.Fprintln(conn, line); err != nil {
		return "", err
	}
	text, err := io.ReadAll(conn)
	return string(text), err
}

// The init script announces the shutdown and continues when the manager has drained the pods.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }() // a leftover in the temporary directory
	path := filepath.Join(dir, "shutdown.sock")

	source, err := unixsocket.New(unixsocket.Options{Path: path})
	if err != nil {
		fmt.Println(err)
		return
	}
	manager, err := shutdown.NewManager(shutdown.Options{
		Config:   plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 20 * time.Second}},
		ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return []*v1.Pod{shutdowntest.Pod("web", 0, 30)} }, nil),
		Killer: shutdown.PodKillerFunc(func(_ context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
			fmt.Printf("kill %s within %d s\n", pod.Name, *req.GracePeriodSeconds)
			return shutdown.KillResult{Outcome: "Graceful"}, nil
		}),
		Source: source,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx) }()
	<-manager.Ready()

	reply, err := announce(path, "poweroff 90")
	if err != nil {
		fmt.Println(err)
	}
	fmt.Printf("the host receives: %s", reply)
	cancel()
	fmt.Println(<-ended)
	// Output:
	// kill web within 20 s
	// the host receives: released
	// <nil>
}

// New validates the options. It does not touch the file system.
func ExampleNew() {
	_, err := unixsocket.New(unixsocket.Options{Path: "/run/agent/shutdown.sock", Delay: -time.Second})
	fmt.Println(err)
	// Output: unixsocket: Options.Delay must not be negative: -1s
}

// A session can be used without a manager.
func ExampleSource_Connect() {
	err := func() (err error) {
		dir, err := os.MkdirTemp("", "agent")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		path := filepath.Join(dir, "shutdown.sock")
		source, err := unixsocket.New(unixsocket.Options{Path: path})
		if err != nil {
			return err
		}
		session, err := source.Connect(context.Background())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, session.Close()) }()
		lock, err := session.Inhibit(context.Background())
		if err != nil {
			return err
		}
		replies := make(chan string)
		go func() {
			reply, err := announce(path, "poweroff")
			replies <- fmt.Sprintf("%s%v", reply, err)
		}()
		event := <-session.Events()
		fmt.Println("the host is about to:", event.Kind)
		err = lock.Close() // the pods have ended
		fmt.Println(<-replies)
		return err
	}()
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// the host is about to: poweroff
	// released
	// <nil>
}
