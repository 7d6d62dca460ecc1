// Package backend is a small web server as people write them: it answers requests,
// some of which take their time, and echoes the messages of websockets. On SIGTERM it
// stops accepting connections at once and ends when its requests are answered.
//
// # Failure modes
//
// A backend whose standard input ends was left by the program that started it, and
// ends at once: no backend outlives that program, whatever became of it.
package backend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// ErrLeft means that the program which had started the backend is gone.
var ErrLeft = errors.New("the program that started this backend is gone")

// Options says how a backend ends.
type Options struct {
	// CloseWebsockets sends a close frame (1001, going away) to each open websocket
	// after the stop signal. Without it they break when the process ends, which is what
	// happens with net/http: Server.Shutdown does not know the connections of websockets.
	CloseWebsockets bool
	// CloseOver is the time over which those are spread, so that not all clients come
	// back in the same moment; 0: all at once.
	CloseOver time.Duration
}

// Run serves on a free port of 127.0.0.1 and writes its address to out, on one line. It
// returns when stop has ended and what was begun before that is done, or, with
// [ErrLeft], when in ends.
func Run(stop context.Context, opts Options, in io.Reader, out io.Writer) error {
	listener, err := (&net.ListenConfig{}).Listen(stop, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("failed to listen: %w", err)
	}
	sockets := newSockets()
	server := &http.Server{Handler: handler(sockets), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = io.Copy(io.Discard, in) // an error is an end as well
	}()
	if _, err := fmt.Fprintln(out, listener.Addr()); err != nil {
		return errors.Join(fmt.Errorf("failed to tell the address: %w", err), server.Close())
	}
	select {
	case err := <-served:
		return fmt.Errorf("failed to serve: %w", err)
	case <-left:
		return errors.Join(ErrLeft, server.Close())
	case <-stop.Done():
	}
	done := make(chan error, 1)
	go func() { done <- finish(context.WithoutCancel(stop), server, sockets, opts) }()
	select {
	case err := <-done:
		return err
	case <-left:
		return errors.Join(ErrLeft, server.Close())
	}
}

// finish answers what was begun. How long that may take is up to the one who sends
// SIGKILL.
func finish(ctx context.Context, server *http.Server, sockets *sockets, opts Options) error {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		if opts.CloseWebsockets {
			sockets.closeAll(opts.CloseOver)
		}
	}()
	err := server.Shutdown(ctx)
	<-closed
	return err
}

// handler answers everything: /readyz at once, /ws with a websocket, and all else when
// the time is over that the request asks for as ?takes=20ms.
func handler(sockets *sockets) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /ws", sockets.serve)
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		takes, err := time.ParseDuration(r.URL.Query().Get("takes"))
		if err != nil {
			http.Error(w, "how long the request takes is no duration: "+err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case <-time.After(takes):
			fmt.Fprintln(w, "done")
		case <-r.Context().Done(): // nobody waits for the answer any more
		}
	})
	return mux
}
