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

// client sends the requests of httpGet hooks. When the context of a request has ended, no
// goroutine or connection of it is left.
type client struct{ http *http.Client }

// NewClient makes a client like the kubelet's: it does not verify certificates, uses no
// proxy, and follows redirects on the same host only. Unlike the kubelet's, it does not send
// the headers of a hook to another port or scheme. If dial is nil, the client dials with
// package net.
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

// Do implements [Doer]. After a request has failed it closes the idle connections, because
// net/http goes on to dial, and to shake hands, for a request that was cancelled.
func (c client) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		c.http.CloseIdleConnections()
	}
	return resp, err
}

// onSameHost allows redirects to the host of the first request. A redirect to another host
// is returned as the response (the kubelet's RedirectChecker).
//
// Another port or scheme of the host is another server: the host may be a node that many
// pods share. net/http compares only host names, and sends all headers to that server, with
// the redirecting URL as the Referer. The kubelet allows that. Here only the server that the
// hook names gets the hook's headers. A later redirect back to that server does not get them
// either, because another server has chosen its path.
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

// originOf returns the origin of a URL. Without a port, the default port of the scheme is used.
func originOf(u *url.URL) origin {
	defaultPort := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	return origin{u.Scheme, u.Hostname(), cmp.Or(u.Port(), defaultPort)}
}
