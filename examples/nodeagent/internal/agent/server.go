package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// serverTimeout bounds how long a client may take for its request, and how long
// requests that are under way are waited for at the end.
const serverTimeout = 5 * time.Second

// serve answers /metrics and /healthz until ctx ends.
func (a *Agent) serve(ctx context.Context) error {
	if a.opts.Listener == nil {
		return nil
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", a.healthz)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: serverTimeout, ReadTimeout: serverTimeout}
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), serverTimeout)
		defer cancel()
		ended <- server.Shutdown(ctx)
	})
	err := server.Serve(a.opts.Listener)
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("failed to serve metrics: %w", err)
	}
	if err := <-ended; err != nil {
		return fmt.Errorf("failed to end serving metrics: %w", err)
	}
	return nil
}

// healthz says ok for as long as the agent works, in a shutdown too: nobody
// should restart an agent that drains.
func (a *Agent) healthz(w http.ResponseWriter, _ *http.Request) {
	text := "ok"
	if err := a.manager.ShutdownStatus(); err != nil {
		text += ": " + err.Error()
	}
	_, _ = fmt.Fprintln(w, text) // a client that has gone needs no answer
}
