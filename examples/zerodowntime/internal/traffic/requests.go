package traffic

import (
	"context"
	"net/http"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/proxy"
)

// Requests sends so many POST requests a second to url, evenly, whether those before were
// answered or not. They are POSTs because no proxy may send one again by itself: each
// failure reaches the client. It ends when until is closed and all were answered, and at once when
// ctx ends; what that breaks off is not counted.
func Requests(ctx context.Context, until <-chan struct{}, url string, perSecond int, to *Recorder) {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	attacker := vegeta.NewAttacker(vegeta.Client(&http.Client{Transport: bounded{ctx, transport}}))
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

// outcome says what became of a request. Whatever is neither answered nor refused had
// reached a backend.
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

// bounded ends all requests with a context: the load generator itself takes none.
type bounded struct {
	ctx       context.Context
	transport http.RoundTripper
}

// RoundTrip sends one request.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	return b.transport.RoundTrip(r.WithContext(b.ctx))
}
