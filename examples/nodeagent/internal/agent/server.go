package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/api"
)

// serverTimeout bounds how long a client may take for its request, and how long the end
// of the server waits for requests that are under way.
const serverTimeout = 5 * time.Second

// maxHeaderBytes is the maximum size of a request's header.
const maxHeaderBytes = 16 << 10

// serve serves /metrics, /healthz and the read-only requests until ctx ends.
func (a *Agent) serve(ctx context.Context) error {
	q := a.queries()
	mux := q.newMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", q.healthz)
	return serveUntil(ctx, a.opts.Listener, mux, "metrics")
}

// serveControl serves all requests on the agent's own socket.
func (a *Agent) serveControl(ctx context.Context) error {
	mux := a.queries().newMux()
	mux.HandleFunc("POST /drain", a.handleDrain)
	mux.HandleFunc("POST /stop", a.handleStop)
	return serveUntil(ctx, a.opts.Control, mux, "the agent's socket")
}

// serveUntil serves until ctx ends. A nil listener serves nothing. Errors call the server
// by name.
func serveUntil(ctx context.Context, listener net.Listener, handler http.Handler, name string) error {
	if listener == nil {
		return nil
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: serverTimeout, ReadTimeout: serverTimeout, IdleTimeout: serverTimeout, MaxHeaderBytes: maxHeaderBytes}
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), serverTimeout)
		defer cancel()
		ended <- server.Shutdown(ctx)
	})
	err := server.Serve(listener)
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("failed to serve %s: %w", name, err)
	}
	if err := <-ended; err != nil {
		return fmt.Errorf("failed to end serving %s: %w", name, err)
	}
	return nil
}

func writeAnswer(w http.ResponseWriter, value any) { writeJSON(w, http.StatusOK, value) }

func writeError(w http.ResponseWriter, status int, message string) {
	writeJSON(w, status, api.Error{Meta: api.Meta{APIVersion: api.Version, Kind: "Error"}, Message: message})
}

// writeJSON writes an answer. Errors are ignored: a client that has disconnected needs no
// answer.
func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}
