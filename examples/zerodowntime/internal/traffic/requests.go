package traffic

import (
	"context"
	"net/http"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/proxy"
)

// Requests sends perSecond POST requests a second to url, at a steady rate that does not
// depend on the answers. A proxy must not repeat a failed POST by itself, so each failure
// reaches the client. Requests returns when until is closed and all requests have ended. When
// ctx ends, it breaks all requests off, does not record them, and returns.
func Requests(ctx context.Context, until <-chan struct{}, url string, perSecond int, to *Recorder) {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	attacker := vegeta.NewAttacker(vegeta.Client(&http.Client{Transport: contextTransport{ctx, transport}}))
	targets := vegeta.NewStaticTargeter(vegeta.Target{Method: http.MethodPost, URL: url})
	results := attacker.Attack(targets, vegeta.Rate{Freq: perSecond, Per: time.Second}, 0, "")
	go func() {
		select {
		case <-until:
		case <-ctx.Done():
		}
		attacker.Stop()
	}()
	for r := range results {
		if ctx.Err() == nil {
			to.Add(Event{Outcome: outcome(r), At: r.End(), Took: r.Latency, Pod: r.Headers.Get(proxy.PodHeader)})
		}
	}
}

// outcome returns the outcome of a request. A request that was neither answered nor refused
// had reached a backend.
func outcome(r *vegeta.Result) Outcome {
	switch {
	case r.Error == "":
		return Answered
	case r.Headers.Get(proxy.FailureHeader) == proxy.Refused:
		return Refused
	default:
		return Cut
	}
}

// contextTransport ends all requests with one context, because the load generator takes none.
type contextTransport struct {
	ctx       context.Context
	transport http.RoundTripper
}

// RoundTrip sends a request with the context.
func (t contextTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.transport.RoundTrip(r.WithContext(t.ctx))
}
