package lifecycle

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
)

// HTTPDoer sends an HTTP request; *http.Client is one. See
// [HandlerRunnerOptions] for what is asked of it.
type HTTPDoer interface {
	Do(req *http.Request) (*http.Response, error)
}

// hookClient is the client of httpGet hooks. Nothing of a request is left when
// its context has ended.
type hookClient struct{ client *http.Client }

// newHTTPClient has the kubelet's rules: a container's certificate proves
// nothing, and no proxy stands between an agent and its pods. A nil dial is that
// of net.
func newHTTPClient(dial func(ctx context.Context, network, addr string) (net.Conn, error)) HTTPDoer {
	return hookClient{&http.Client{
		Transport: &http.Transport{
			DialContext:       dial,
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // as the kubelet: no CA signs for pods
		},
		CheckRedirect: onSameHost,
	}}
}

// Do implements [HTTPDoer]. Once a request has failed the transport is told to
// give up its connections, because net/http goes on to dial, and to shake hands,
// for a request that was cancelled meanwhile.
func (c hookClient) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.client.Do(req)
	if err != nil {
		c.client.CloseIdleConnections()
	}
	return resp, err
}

// onSameHost follows redirects within the host that was asked first. One that
// leads elsewhere is itself the answer (the kubelet's RedirectChecker).
func onSameHost(req *http.Request, via []*http.Request) error {
	if req.URL.Hostname() != via[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}
