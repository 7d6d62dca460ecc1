package proxy

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"syscall"
)

// The headers that the proxy adds to its answers.
const (
	// PodHeader names the pod to which the request was sent.
	PodHeader = "X-Pod"
	// FailureHeader says why a backend has not answered: [Refused] or [Cut].
	FailureHeader = "X-Failure"
)

// The values of [FailureHeader].
const (
	// Refused means that no backend accepted the connection: the chosen one did not listen,
	// or there was none to choose.
	Refused = "refused"
	// Cut means that a backend accepted the connection and broke it off before its answer.
	Cut = "cut"
)

// Handler forwards each request, including websockets, to an endpoint of a table. Make
// one with [New], and call Close when the server that uses it has ended.
type Handler struct {
	table     *Table
	transport *http.Transport
	proxy     *httputil.ReverseProxy
}

// endpointKey is the context key of the endpoint that was picked for a request.
type endpointKey struct{}

// New makes a handler that forwards each request to an endpoint that table picks. It keeps
// connections to backends open. A request that has failed is not sent to a second backend.
func New(table *Table) *Handler {
	h := &Handler{table: table, transport: &http.Transport{MaxIdleConnsPerHost: 64}} // Proxy is nil: HTTP_PROXY is not for backends
	h.proxy = &httputil.ReverseProxy{
		Transport: h.transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			to, _ := r.In.Context().Value(endpointKey{}).(Endpoint)
			r.SetURL(&url.URL{Scheme: "http", Host: to.Address})
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			failure := Cut
			if errors.Is(err, syscall.ECONNREFUSED) {
				failure = Refused
			}
			fail(w, http.StatusBadGateway, failure)
		},
		ErrorLog: log.New(io.Discard, "", 0), // the clients count the failures
	}
	return h
}

// ServeHTTP forwards a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to, ok := h.table.Pick()
	if !ok {
		fail(w, http.StatusServiceUnavailable, Refused)
		return
	}
	w.Header().Set(PodHeader, to.Name)
	h.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), endpointKey{}, to)))
}

// Close closes the idle connections to backends.
func (h *Handler) Close() { h.transport.CloseIdleConnections() }

// fail answers a request that no backend has answered.
func fail(w http.ResponseWriter, status int, failure string) {
	w.Header().Set(FailureHeader, failure)
	w.WriteHeader(status)
}
