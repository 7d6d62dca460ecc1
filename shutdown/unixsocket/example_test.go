package unixsocket_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"github.com/kubegrace/kubegrace/shutdown/unixsocket"
)

// The host's init script says what it is about to do, and goes on with the reply. A
// manager does the rest; here the session is used without one.
func Example() {
	err := func() (err error) {
		dir, err := os.MkdirTemp("", "agent")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		source, err := unixsocket.New(unixsocket.Options{Path: filepath.Join(dir, "shutdown.sock")})
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

		// What echo poweroff | socat -t 90 - UNIX-CONNECT:shutdown.sock does.
		script, err := net.Dial("unix", filepath.Join(dir, "shutdown.sock"))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, script.Close()) }()
		if _, err := fmt.Fprintln(script, "poweroff"); err != nil {
			return err
		}

		event := <-session.Events()
		fmt.Println("the host is about to:", event.Kind)
		if err := lock.Close(); err != nil { // the pods have ended
			return err
		}
		answer, err := io.ReadAll(script)
		fmt.Printf("the host is told: %s", answer)
		return err
	}()
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// the host is about to: poweroff
	// the host is told: released
}
