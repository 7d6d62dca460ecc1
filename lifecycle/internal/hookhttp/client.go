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

// client sends the requests of httpGet hooks. When the context of a request ends, its goroutines and its
// connection end too.
type client struct{ http *http.Client }

// NewClient returns a client like the kubelet's: it does not verify certificates, uses no proxy, and
// follows redirects on the same host only. Unlike the kubelet's, it does not send a hook's headers to
// another port or scheme. dial makes its connections; nil: package net does.
func NewClient(dial func(ctx context.Context, network, addr string) (net.Conn, error)) Doer {
	return client{&http.Client{
		Transport: &http.Transport{
			DialContext:       dial,
			DisableKeepAlives: true,                                  // one kept alive would cost two goroutines and a file descriptor for each pod
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // as the kubelet: pods have no certificates of a known CA
		},
		CheckRedirect: checkRedirect,
	}}
}

// Do implements [Doer]. When the context of a request ends, net/http does not stop the dial and the handshake that it
// began for the request. CloseIdleConnections cancels them, and closes a connection that is made all the same.
func (c client) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		c.http.CloseIdleConnections()
	}
	return resp, err
}

// checkRedirect decides whether the redirect to req, after the requests via, is followed. Like the kubelet's
// RedirectChecker, it follows up to ten redirects on the host of the first request. A redirect to another host
// is not followed; it is the response.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if req.URL.Hostname() != via[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	removeHookHeaders(req, via)
	return nil
}

// removeHookHeaders removes the hook's headers, which may be secret, from a redirect to another port or scheme. That is
// another server: the host may be a node that many pods share. net/http, and so the kubelet, compares only
// host names and sends the headers. A later redirect back to the first server does not get them either,
// because another server chose its path.
func removeHookHeaders(req *http.Request, via []*http.Request) {
	isToOtherServer := func(r *http.Request) bool { return originOf(r.URL) != originOf(via[0].URL) }
	if isToOtherServer(req) || slices.ContainsFunc(via, isToOtherServer) {
		maps.DeleteFunc(req.Header, func(name string, _ []string) bool { return name != "Accept" && name != "User-Agent" })
	}
}

// origin identifies a server on a host. Two URLs with the same origin are answered by the same server.
type origin struct{ scheme, host, port string }

// originOf returns the origin of a URL, with the scheme's default port if it has none.
func originOf(u *url.URL) origin {
	defaultPort := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	return origin{u.Scheme, u.Hostname(), cmp.Or(u.Port(), defaultPort)}
}
