package hookhttp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
)

// client sends the requests of httpGet hooks. No goroutine or connection of a request outlives its
// context.
type client struct{ http *http.Client }

// NewClient returns a client like the kubelet's: it does not verify certificates, uses no proxy, and
// follows redirects on the same host only. Unlike the kubelet's, it does not send a hook's headers to
// another port or scheme. If dial is nil, it dials with package net.
func NewClient(dial func(ctx context.Context, network, addr string) (net.Conn, error)) Doer {
	return client{&http.Client{
		Transport: &http.Transport{
			DialContext:       dial,
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // as the kubelet: pods have no certificates of a known CA
		},
		CheckRedirect: onSameHost,
	}}
}

// Do implements [Doer]. After a failed request it closes idle connections, because net/http continues
// to dial and to handshake for a cancelled request.
func (c client) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		c.http.CloseIdleConnections()
	}
	return resp, err
}

// onSameHost allows redirects on the host of the first request. Other redirects are returned as the
// response (the kubelet's RedirectChecker).
//
// Another port or scheme of the host is another server: the host may be a node that many pods share.
// net/http compares only host names, and sends all headers to that server, with the redirecting URL as
// the Referer; so does the kubelet. Here, only the server that the hook names gets the hook's headers.
// A later redirect back to that server does not get them, because another server chose its path.
func onSameHost(req *http.Request, via []*http.Request) error {
	first := via[0]
	if req.URL.Hostname() != first.URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	isOther := func(r *http.Request) bool { return originOf(r.URL) != originOf(first.URL) }
	if isOther(req) || slices.ContainsFunc(via, isOther) {
		maps.DeleteFunc(req.Header, func(name string, _ []string) bool { return name != "Accept" && name != "User-Agent" })
	}
	return nil
}

// origin identifies a server.
type origin struct{ scheme, host, port string }

// originOf returns the origin of a URL, with the scheme's default port if it has none.
func originOf(u *url.URL) origin {
	defaultPort := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	return origin{u.Scheme, u.Hostname(), cmp.Or(u.Port(), defaultPort)}
}
