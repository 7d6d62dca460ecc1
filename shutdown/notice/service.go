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
	// answerTimeout is the timeout of a request with its answer. A service on the link-local address
	// answers within milliseconds.
	answerTimeout = 5 * time.Second
	// maxBody and maxHeader are the most bytes of an answer. The longest is Azure's document for a large
	// scale set.
	maxBody, maxHeader = 1 << 20, 64 << 10
)

// service sends requests to a metadata service. It uses no proxy and follows no redirect.
type service struct {
	client *http.Client
	base   string
}

// newService returns the service at p.Endpoint. The paths of requests are appended to that URL, so it must name a
// host and have no query and no fragment.
func newService(p Provider) (*service, error) {
	base := strings.TrimSuffix(cmp.Or(p.Endpoint, "http://169.254.169.254"), "/")
	endpoint, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("notice: Provider.Endpoint: %w", err)
	}
	isHTTP := endpoint.Scheme == "http" || endpoint.Scheme == "https"
	hasQueryOrFragment := strings.ContainsAny(base, "?#")
	if !isHTTP || endpoint.Hostname() == "" || hasQueryOrFragment {
		return nil, fmt.Errorf("notice: Provider.Endpoint %q is no http URL of a host", p.Endpoint)
	}
	return &service{base: base, client: &http.Client{
		Transport: &http.Transport{DialContext: p.Dial, DisableCompression: true, MaxResponseHeaderBytes: maxHeader},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}}, nil
}

// request is a request to a service.
type request struct {
	method  string // "": GET
	path    string // with the query
	header  map[string]string
	body    []byte
	timeout time.Duration // 0: answerTimeout
}

// answer is the answer to a request, with any status.
type answer struct {
	request request
	status  int
	header  http.Header
	body    []byte
	// clockAhead is how far this machine's clock is ahead of the service's, as closely as the
	// duration of the request allows. It is added to times of the service.
	clockAhead time.Duration
}

// send sends a request and reads the whole answer.
func (s *service) send(ctx context.Context, r request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.timeout, answerTimeout))
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
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1)) // one more byte shows that the body is too long
	err = errors.Join(err, resp.Body.Close())
	switch {
	case err != nil:
		return answer{}, fmt.Errorf("read the answer to %s: %w", r.path, err)
	case len(body) > maxBody:
		return answer{}, fmt.Errorf("the answer to %s has more than %d bytes", r.path, maxBody)
	}
	return answer{request: r, status: resp.StatusCode, header: resp.Header, body: body, clockAhead: clockAhead(resp.Header, sent, time.Now())}, nil
}

// clockAhead compares the Date of an answer with this machine's clock, and returns how far this machine's clock is ahead
// of the service's; negative: behind. sent and received are when this machine sent the request and had the answer. Date
// has whole seconds, so the result is 0 as long as the clocks may be equal. Without a Date it is 0 too.
func clockAhead(header http.Header, sent, received time.Time) time.Duration {
	date, err := http.ParseTime(header.Get("Date"))
	switch {
	case err != nil:
		return 0
	case date.Add(time.Second).Before(sent): // the answer seems older than its request
		return sent.Sub(date)
	case date.After(received): // the answer seems to come from the future; the result is negative
		return received.Sub(date)
	default:
		return 0
	}
}

// statusError returns the error for an answer with an unexpected status.
func (a answer) statusError() error {
	return fmt.Errorf("the answer to %s has the status %d %s", a.request.path, a.status, http.StatusText(a.status))
}
