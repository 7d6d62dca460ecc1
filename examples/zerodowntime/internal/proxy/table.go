// Package proxy is a load balancer that learns late of its backends, as kube-proxy and
// every ingress do: an EndpointSlice has to be written, sent and made into rules first.
//
// # Concurrency properties
//
// All methods may be called concurrently.
package proxy

import (
	"slices"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// Endpoint is one backend, as an EndpointSlice has it.
type Endpoint struct {
	Name       string // the pod's
	Address    string // host:port
	Conditions discoveryv1.EndpointConditions
}

// Table is the proxy's view of the endpoints: what was published at least a delay ago.
// Make one with [NewTable].
type Table struct {
	delay time.Duration

	mu       sync.Mutex
	versions []version // the one in force, then those to come
	turn     int       // counts the picks
}

// version is what was published at one time.
type version struct {
	from      time.Time // when it is in force
	endpoints []Endpoint
}

// NewTable makes a table whose changes come into force a delay after they are published.
func NewTable(delay time.Duration) *Table { return &Table{delay: delay} }

// Publish replaces all endpoints. It does not keep the slice.
func (t *Table) Publish(endpoints []Endpoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.versions = append(t.versions, version{from: time.Now().Add(t.delay), endpoints: slices.Clone(endpoints)})
}

// Pick gives the next endpoint that takes new connections, in turn; ok is false if none
// does. By kube-proxy's rule (KEP-1669) those are the endpoints that are ready, and only
// if there is none those that serve while they terminate. A condition that is not set
// has the meaning of KEP-1672: serving is then ready, and terminating is false.
func (t *Table) Pick() (picked Endpoint, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for len(t.versions) > 1 && !t.versions[1].from.After(now) {
		t.versions = t.versions[1:]
	}
	if len(t.versions) == 0 || t.versions[0].from.After(now) {
		return Endpoint{}, false
	}
	usable := usable(t.versions[0].endpoints)
	if len(usable) == 0 {
		return Endpoint{}, false
	}
	t.turn++
	return usable[t.turn%len(usable)], true
}

// usable are the endpoints that take new connections.
func usable(endpoints []Endpoint) []Endpoint {
	var ready, serving []Endpoint
	for _, e := range endpoints {
		is := func(condition *bool, otherwise bool) bool {
			if condition == nil {
				return otherwise
			}
			return *condition
		}
		isReady, terminates := is(e.Conditions.Ready, true), is(e.Conditions.Terminating, false)
		if isReady && !terminates {
			ready = append(ready, e)
		} else if terminates && is(e.Conditions.Serving, isReady) {
			serving = append(serving, e)
		}
	}
	if len(ready) > 0 {
		return ready
	}
	return serving
}
