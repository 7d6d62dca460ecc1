package main

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// balancer chooses a pod for each request, in turn. It learns with a delay that a pod is ready or deleted, as
// kube-proxy and every load balancer do: before a change takes effect, an EndpointSlice is written, sent to
// each node and turned into rules.
type balancer struct {
	delay time.Duration

	mu        sync.Mutex
	endpoints []endpoint
	picks     int // how many requests have been given a pod so far
}

// endpoint is a pod that is ready, or was ready until it was deleted.
type endpoint struct {
	address string
	added   time.Time
	removed time.Time // zero until the pod is deleted
}

// add adds the address of a pod that is ready from now on. The balancer uses it after its delay.
func (b *balancer) add(address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endpoints = append(b.endpoints, endpoint{address: address, added: time.Now()})
}

// remove removes the address of a pod that is deleted now. The balancer still uses it for its delay.
func (b *balancer) remove(address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.endpoints {
		if b.endpoints[i].address == address {
			b.endpoints[i].removed = time.Now()
		}
	}
}

// pick returns the address of the next pod that the balancer knows. It returns "" if the balancer knows none.
func (b *balancer) pick() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	knownUntil := time.Now().Add(-b.delay) // the balancer does not know later changes
	var addresses []string
	for _, e := range b.endpoints {
		knowsAdded := !e.added.After(knownUntil)
		knowsRemoved := !e.removed.IsZero() && !e.removed.After(knownUntil)
		if knowsAdded && !knowsRemoved {
			addresses = append(addresses, e.address)
		}
	}
	if len(addresses) == 0 {
		return ""
	}
	b.picks++
	return addresses[b.picks%len(addresses)]
}

// forward returns a reverse proxy that sends each request to the address that pick returns. If that fails, the
// proxy answers with 502 and does not send the request again, so that the client counts it as lost.
func forward(transport http.RoundTripper, pick func() string) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: pick()}) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.WriteHeader(http.StatusBadGateway) // nothing is logged, because the clients count lost requests
		},
	}
}
