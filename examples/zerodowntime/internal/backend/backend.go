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

// ErrParentGone means that the program which started the backend has ended.
var ErrParentGone = errors.New("the program that started this backend is gone")

// Options says how a backend ends.
type Options struct {
	// CloseWebsockets sends a close frame (1001, going away) to each open websocket after
	// the stop signal. Without it the websockets break when the process ends, because
	// Server.Shutdown of net/http does not know their connections.
	CloseWebsockets bool
	// CloseOver is the time over which the close frames are spread, so that the clients do
	// not all connect again at the same moment; 0: all at once.
	CloseOver time.Duration
}

// Run serves on a free port of 127.0.0.1 and writes its address to out, on one line. When
// stop ends, Run accepts no more connections, and returns when all requests are answered.
// When in ends, it returns [ErrParentGone] at once.
func Run(stop context.Context, opts Options, in io.Reader, out io.Writer) error {
	listener, err := (&net.ListenConfig{}).Listen(stop, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("failed to listen: %w", err)
	}
	sockets := newWebsockets()
	server := &http.Server{Handler: handler(sockets), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	parentGone := make(chan struct{})
	go func() {
		defer close(parentGone)
		_, _ = io.Copy(io.Discard, in) // with an error the input has ended, too
	}()
	if _, err := fmt.Fprintln(out, listener.Addr()); err != nil {
		return errors.Join(fmt.Errorf("failed to tell the address: %w", err), server.Close())
	}
	select {
	case err := <-served:
		return fmt.Errorf("failed to serve: %w", err)
	case <-parentGone:
		return errors.Join(ErrParentGone, server.Close())
	case <-stop.Done():
	}
	done := make(chan error, 1)
	go func() { done <- finish(context.WithoutCancel(stop), server, sockets, opts) }()
	select {
	case err := <-done:
		return err
	case <-parentGone:
		return errors.Join(ErrParentGone, server.Close())
	}
}

// finish closes the listener and waits until all requests are answered. It has no timeout:
// whoever sent SIGTERM sends SIGKILL in the end.
func finish(ctx context.Context, server *http.Server, sockets *websockets, opts Options) error {
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

// handler answers GET /readyz at once, GET /ws with a websocket, and each POST after the time
// that it asks for, as in ?takes=20ms.
func handler(sockets *websockets) http.Handler {
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
		case <-r.Context().Done(): // the client has gone
		}
	})
	return mux
}
