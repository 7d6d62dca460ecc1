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

// The headers by which the answer to a request says more than its status does.
const (
	// PodHeader names the pod that a request was sent to.
	PodHeader = "X-Pod"
	// FailureHeader says why there is no answer: [Refused] or [Cut].
	FailureHeader = "X-Failure"
)

// The values of [FailureHeader].
const (
	// Refused means that no backend took the connection: the one that the proxy chose
	// did not listen, or there was none to choose.
	Refused = "refused"
	// Cut means that a backend took the request and ended before it had answered.
	Cut = "cut"
)

// Handler sends each request, websockets included, to an endpoint of a table. Make one
// with [New], and call Close when the server that uses it has ended.
type Handler struct {
	table     *Table
	transport *http.Transport
	proxy     *httputil.ReverseProxy
}

// chosen is the key of an endpoint in the context of its request.
type chosen struct{}

// New makes a handler that asks table where to send each request. It keeps connections to
// backends open as proxies do, and tries no second backend for a request that has failed.
func New(table *Table) *Handler {
	// No backend is behind a proxy of the environment's.
	h := &Handler{table: table, transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	h.proxy = &httputil.ReverseProxy{
		Transport: h.transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			to, _ := r.In.Context().Value(chosen{}).(Endpoint)
			r.SetURL(&url.URL{Scheme: "http", Host: to.Address})
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			failure := Cut
			if errors.Is(err, syscall.ECONNREFUSED) {
				failure = Refused
			}
			fail(w, http.StatusBadGateway, failure)
		},
		ErrorLog: log.New(io.Discard, "", 0), // failures are counted where the requests come from
	}
	return h
}

// ServeHTTP sends a request on.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to, ok := h.table.Pick()
	if !ok {
		fail(w, http.StatusServiceUnavailable, Refused)
		return
	}
	w.Header().Set(PodHeader, to.Name)
	h.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), chosen{}, to)))
}

// Close closes the connections to backends that are not in use.
func (h *Handler) Close() { h.transport.CloseIdleConnections() }

func fail(w http.ResponseWriter, status int, failure string) {
	w.Header().Set(FailureHeader, failure)
	w.WriteHeader(status)
}
