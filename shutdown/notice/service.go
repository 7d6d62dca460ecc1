package notice

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// answerTimeout bounds a request, the reading of its answer included. A service on the
	// link-local address answers within milliseconds.
	answerTimeout = 5 * time.Second
	// maxBody bounds the body of an answer, maxHeader its header. The longest that is expected is
	// Azure's document for the machines of a large scale set.
	maxBody, maxHeader = 1 << 20, 64 << 10
)

// service sends requests to a metadata service, and nowhere else: it uses no proxy and follows no
// redirect.
type service struct {
	client *http.Client
	base   string
}

// newService returns the service at a provider's endpoint.
func newService(p Provider) (*service, error) {
	base := strings.TrimSuffix(cmp.Or(p.Endpoint, "http://169.254.169.254"), "/")
	endpoint, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("notice: Provider.Endpoint: %w", err)
	}
	if (endpoint.Scheme != "http" && endpoint.Scheme != "https") || endpoint.Hostname() == "" || strings.ContainsAny(base, "?#") {
		return nil, fmt.Errorf("notice: Provider.Endpoint %q is no http URL of a host", p.Endpoint)
	}
	return &service{base: base, client: &http.Client{
		Transport: &http.Transport{DialContext: p.Dial, DisableCompression: true, MaxResponseHeaderBytes: maxHeader},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}}, nil
}

// request is one request to a service.
type request struct {
	method string // "": GET
	path   string // with the query
	header map[string]string
	body   []byte
	within time.Duration // bounds the request; 0: answerTimeout
}

// answer is the answer to a request, whatever its status.
type answer struct {
	request request
	status  int
	header  http.Header
	body    []byte
	// clockAhead is how much this machine's clock is ahead of the service's, as far as that is
	// sure: beyond the time that the request took. A time that the service names is that much later
	// here.
	clockAhead time.Duration
}

// ask sends a request and reads the whole answer.
func (s *service) ask(ctx context.Context, r request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.within, answerTimeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, cmp.Or(r.method, http.MethodGet), s.base+r.path, bytes.NewReader(r.body))
	if err != nil {
		return answer{}, err
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	sent := time.Now()
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	err = errors.Join(err, resp.Body.Close())
	switch {
	case err != nil:
		return answer{}, fmt.Errorf("read the answer to %s: %w", r.path, err)
	case len(body) > maxBody:
		return answer{}, fmt.Errorf("the answer to %s has more than %d bytes", r.path, maxBody)
	}
	return answer{request: r, status: resp.StatusCode, header: resp.Header, body: body, clockAhead: clockAhead(resp.Header, sent, time.Now())}, nil
}

// clockAhead compares the Date of an answer, which is in whole seconds, with the clock of this
// machine. An answer without a Date says nothing.
func clockAhead(header http.Header, sent, received time.Time) time.Duration {
	date, err := http.ParseTime(header.Get("Date"))
	switch {
	case err != nil:
		return 0
	case date.Add(time.Second).Before(sent):
		return sent.Sub(date)
	case date.After(received):
		return received.Sub(date)
	default:
		return 0
	}
}

// unexpected is the error of an answer with a status that its request should not get.
func (a answer) unexpected() error {
	return fmt.Errorf("the answer to %s has the status %d %s", a.request.path, a.status, http.StatusText(a.status))
}
