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

// mostHeader is the maximum size of a request's header in bytes.
const mostHeader = 16 << 10

// serve serves /metrics, /healthz and the read-only requests until ctx ends.
func (a *Agent) serve(ctx context.Context) error {
	mux := a.reads()
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", a.healthz)
	return serveUntil(ctx, a.opts.Listener, mux, "metrics")
}

// serveControl serves all requests on the agent's own socket.
func (a *Agent) serveControl(ctx context.Context) error {
	mux := a.reads()
	mux.HandleFunc("POST /drain", a.handleDrain)
	mux.HandleFunc("POST /stop", a.handleStop)
	return serveUntil(ctx, a.opts.Control, mux, "the agent's socket")
}

// reads returns the handlers of the read-only requests.
func (a *Agent) reads() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /plan", func(w http.ResponseWriter, _ *http.Request) { answer(w, api.PlanOf(a.manager.Plan())) })
	mux.HandleFunc("GET /pods", func(w http.ResponseWriter, _ *http.Request) { answer(w, a.podList()) })
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, _ *http.Request) {
		if report, ok := a.report(); ok {
			answer(w, report)
			return
		}
		refuse(w, http.StatusNotFound, "there was no shutdown yet")
	})
	return mux
}

// serveUntil serves until ctx ends. A nil listener serves nothing.
func serveUntil(ctx context.Context, listener net.Listener, handler http.Handler, what string) error {
	if listener == nil {
		return nil
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: serverTimeout, ReadTimeout: serverTimeout, IdleTimeout: serverTimeout, MaxHeaderBytes: mostHeader}
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), serverTimeout)
		defer cancel()
		ended <- server.Shutdown(ctx)
	})
	err := server.Serve(listener)
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("failed to serve %s: %w", what, err)
	}
	if err := <-ended; err != nil {
		return fmt.Errorf("failed to end serving %s: %w", what, err)
	}
	return nil
}

// answer and refuse write JSON. Errors are ignored: a client that has disconnected needs no answer.
func answer(w http.ResponseWriter, value any) { respond(w, http.StatusOK, value) }

func refuse(w http.ResponseWriter, status int, why string) {
	respond(w, status, api.Error{Meta: api.Meta{APIVersion: api.Version, Kind: "Error"}, Message: why})
}

func respond(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

// healthz answers ok as long as the agent works, also during a shutdown: an agent that
// drains must not be restarted.
func (a *Agent) healthz(w http.ResponseWriter, _ *http.Request) {
	text := "ok"
	if err := a.manager.ShutdownStatus(); err != nil {
		text += ": " + err.Error()
	}
	_, _ = fmt.Fprintln(w, text) // a client that has disconnected needs no answer
}
