package main

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// balancer chooses a pod for each request, in turn. It learns of pods with a delay, as kube-proxy and every load
// balancer do: an EndpointSlice is written, sent to each node and made into rules before a change takes effect.
type balancer struct {
	delay time.Duration

	mu        sync.Mutex
	endpoints []endpoint
	picks     int // so far
}

// endpoint is a pod that is, or was, ready.
type endpoint struct {
	address string
	added   time.Time
	removed time.Time // zero until the pod is deleted
}

// add makes a pod an endpoint.
func (b *balancer) add(address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endpoints = append(b.endpoints, endpoint{address: address, added: time.Now()})
}

// remove ends the endpoint of a pod, which is deleted at this moment.
func (b *balancer) remove(address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.endpoints {
		if b.endpoints[i].address == address {
			b.endpoints[i].removed = time.Now()
		}
	}
}

// pick returns the address of the next endpoint that the balancer knows; "" if it knows none.
func (b *balancer) pick() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := time.Now().Add(-b.delay) // the changes up to this time
	var addresses []string
	for _, e := range b.endpoints {
		if !e.added.After(known) && (e.removed.IsZero() || e.removed.After(known)) {
			addresses = append(addresses, e.address)
		}
	}
	if len(addresses) == 0 {
		return ""
	}
	b.picks++
	return addresses[b.picks%len(addresses)]
}

// forward returns a reverse proxy that sends each request to the address that pick returns. A request that fails
// there is answered with 502 and not sent again.
func forward(transport http.RoundTripper, pick func() string) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: pick()}) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.WriteHeader(http.StatusBadGateway) // nothing is logged, because the clients count lost requests
		},
	}
}
