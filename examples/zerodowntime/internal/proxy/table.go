package proxy

import (
	"slices"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// Endpoint is one backend of an EndpointSlice.
type Endpoint struct {
	Name       string // of the pod
	Address    string // host:port
	Conditions discoveryv1.EndpointConditions
}

// Table holds the endpoints that the proxy knows: those that were published at least a delay
// ago. Make one with [NewTable].
type Table struct {
	delay time.Duration

	mu       sync.Mutex
	versions []version // first the one in effect, then the later ones
	picks    int       // the number of picks so far
}

// version is one published list of endpoints.
type version struct {
	from      time.Time // when it takes effect
	endpoints []Endpoint
}

// NewTable makes a table whose changes take effect a delay after they are published.
func NewTable(delay time.Duration) *Table { return &Table{delay: delay} }

// Publish replaces all endpoints. It copies the slice.
func (t *Table) Publish(endpoints []Endpoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.versions = append(t.versions, version{from: time.Now().Add(t.delay), endpoints: slices.Clone(endpoints)})
}

// Pick returns the next of the endpoints that take new connections, in turn; ok is false if
// there are none. By kube-proxy's rule (KEP-1669) the ready endpoints take new connections. If
// there is no ready one, those take them that serve while they terminate. By KEP-1672 a missing
// condition ready counts as true, serving as equal to ready, and terminating as false.
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
	candidates := candidates(t.versions[0].endpoints)
	if len(candidates) == 0 {
		return Endpoint{}, false
	}
	t.picks++
	return candidates[t.picks%len(candidates)], true
}

// candidates returns the endpoints that take new connections.
func candidates(endpoints []Endpoint) []Endpoint {
	var ready, serving []Endpoint
	for _, e := range endpoints {
		isReady, terminates := ptr.Deref(e.Conditions.Ready, true), ptr.Deref(e.Conditions.Terminating, false)
		if isReady && !terminates {
			ready = append(ready, e)
		} else if terminates && ptr.Deref(e.Conditions.Serving, isReady) {
			serving = append(serving, e)
		}
	}
	if len(ready) > 0 {
		return ready
	}
	return serving
}
