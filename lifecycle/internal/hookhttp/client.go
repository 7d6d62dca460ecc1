package hookhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
)

// client sends httpGet hooks. Nothing of a request is left when its context has ended.
type client struct{ http *http.Client }

// NewClient makes a client with the kubelet's rules: a container's certificate proves
// nothing, no proxy stands between an agent and its pods, and redirects are followed on the
// same host only. A nil dial is that of net.
func NewClient(dial func(ctx context.Context, network, addr string) (net.Conn, error)) Doer {
	return client{&http.Client{
		Transport: &http.Transport{
			DialContext:       dial,
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // as the kubelet: no CA signs for pods
		},
		CheckRedirect: onSameHost,
	}}
}

// Do implements [Doer]. Once a request has failed the transport is told to
// give up its connections, because net/http goes on to dial, and to shake hands,
// for a request that was cancelled meanwhile.
func (c client) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		c.http.CloseIdleConnections()
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
