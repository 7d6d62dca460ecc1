package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/time/rate"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/internal/times"
)

// Limits on what clients can consume: any user of the machine can connect to the port.
const (
	requestTimeout   = 5 * time.Second // for reading a request, and on the port also for writing its answer
	maxHeaderBytes   = 8 << 10
	maxConnections   = 48 // beyond it the oldest connection is closed, so that a new client is always answered
	metricsPerSecond = 5  // requests to /metrics, which takes the most work
)

// serve serves /metrics and /healthz on the TCP port until ctx ends.
func (a *Agent) serve(ctx context.Context) {
	metricsLimiter := rate.NewLimiter(metricsPerSecond, metricsPerSecond)
	metricsHandler := promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", a.healthz)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if !metricsLimiter.Allow() {
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		metricsHandler.ServeHTTP(w, r)
	})
	a.serveUntil(ctx, "port of /healthz", a.opts.Listen, &http.Server{Handler: mux, WriteTimeout: requestTimeout})
}

// serveControl serves all requests of package api on the agent's Unix socket. It has no timeout for answers: a
// drain takes long, and only root and the agent's own user can connect to the socket.
func (a *Agent) serveControl(ctx context.Context) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", a.healthz)
	for pattern, answer := range map[string]func(context.Context) (any, error){
		"GET /plan":   func(context.Context) (any, error) { return a.planDocument(a.manager.Plan()), nil },
		"GET /status": a.status, "GET /report": a.report, "POST /drain": a.drain, "POST /undrain": a.undrain,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			value, err := answer(r.Context())
			if err != nil {
				w.WriteHeader(http.StatusConflict)
				value = api.Error{Meta: api.Meta{APIVersion: api.Version, Kind: "Error"}, Message: err.Error()}
			}
			_ = json.NewEncoder(w).Encode(value) // a client that has disconnected needs no answer
		})
	}
	a.serveUntil(ctx, "socket of the commands", a.opts.Control, &http.Server{Handler: mux})
}

// serveUntil serves until ctx ends. If the listener cannot be opened, or fails later, it opens a new one after a
// pause. Until then the server counts as missing, under its name. With a nil listen it serves nothing.
func (a *Agent) serveUntil(ctx context.Context, name string, listen func() (net.Listener, error), server *http.Server) {
	if listen == nil {
		return
	}
	server.ReadHeaderTimeout, server.ReadTimeout, server.IdleTimeout, server.MaxHeaderBytes = requestTimeout, requestTimeout, requestTimeout, maxHeaderBytes
	server.ConnState = (&connections{}).changed
	server.BaseContext = func(net.Listener) context.Context { return ctx } // so that clients do not keep a leaving agent waiting
	// One answer per connection, so that no client queues thousands of requests on one.
	server.SetKeepAlivesEnabled(false)
	for ctx.Err() == nil {
		listener, err := listen()
		a.missingParts.update(ctx, name, err)
		if err == nil {
			a.serveListener(ctx, name, listener, server)
		}
		_ = times.Sleep(ctx, retryInterval) // an ended ctx ends the loop
	}
}

// serveListener serves until ctx ends or the listener fails. After a failure the server counts as missing, under its name.
// At the end of ctx serveListener waits for requests under way, for at most requestTimeout.
func (a *Agent) serveListener(ctx context.Context, name string, listener net.Listener, server *http.Server) {
	shutdownErr := make(chan error, 1)
	stopShutdown := context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		shutdownErr <- errors.Join(server.Shutdown(ctx), server.Close())
	})
	err := server.Serve(listener)
	hasFailed := stopShutdown() // ctx has not ended: Serve returned because the listener failed
	if hasFailed {
		a.missingParts.update(ctx, name, err)
		return
	}
	if err := <-shutdownErr; err != nil {
		a.opts.Logger.V(1).Info("Failed to wait for requests", "name", name, "err", err)
	}
}

// connections has the open connections of one server, the oldest first.
type connections struct {
	mu   sync.Mutex
	open []net.Conn
}

// changed is the server's ConnState hook. It closes the oldest connection when a new one exceeds
// maxConnections.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	var oldest net.Conn
	c.mu.Lock()
	switch state {
	case http.StateNew:
		c.open = append(c.open, conn)
		if len(c.open) > maxConnections {
			oldest, c.open = c.open[0], slices.Clone(c.open[1:])
		}
	case http.StateClosed, http.StateHijacked:
		c.open = slices.DeleteFunc(c.open, func(other net.Conn) bool { return other == conn })
	case http.StateActive, http.StateIdle:
	}
	c.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close() // the server notices, and reports StateClosed
	}
}

// healthz answers 200 if the host's shutdown would wait long enough for the pods, and 503 if not, or if the
// host does not answer. It also answers 200 during a shutdown, because nobody must restart an agent that
// drains. Each further line of the body names something that is missing.
func (a *Agent) healthz(w http.ResponseWriter, r *http.Request) {
	lines := []string{"ok"}
	inhibitor := a.checkInhibitor(r.Context())
	if err := a.manager.ShutdownStatus(); err != nil {
		lines[0] += ": " + err.Error()
	} else if inhibitor.Err != nil {
		lines[0] = "not ok"
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = fmt.Fprintln(w, strings.Join(append(lines, a.missingParts.lines()...), "\n")) // a client that has disconnected needs no answer
}
