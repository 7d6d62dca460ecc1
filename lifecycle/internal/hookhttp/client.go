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

// client sends httpGet hooks. Nothing of a request is left when its context has ended.
type client struct{ http *http.Client }

// NewClient makes a client with the kubelet's rules: a container's certificate proves
// nothing, no proxy stands between an agent and its pods, and redirects are followed on the
// same host only, without a hook's headers where they lead to another port of it. A nil dial is that of net.
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
//
// Behind another port of the host, or another scheme, is another server, where the host
// is a node that many pods share. net/http compares host names only and sends it all
// headers, and the URL that redirected as the Referer; the kubelet lets it. Here the
// headers of a hook stay with the server that the hook names. They are not sent again
// by a redirect that leads back to it, because another server has chosen its path.
func onSameHost(req *http.Request, via []*http.Request) error {
	first := via[0]
	if req.URL.Hostname() != first.URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	elsewhere := func(r *http.Request) bool { return originOf(r.URL) != originOf(first.URL) }
	if elsewhere(req) || slices.ContainsFunc(via, elsewhere) {
		maps.DeleteFunc(req.Header, func(name string, _ []string) bool { return name != "Accept" && name != "User-Agent" })
	}
	return nil
}

// origin is what tells one server from another.
type origin struct{ scheme, host, port string }

// originOf gives the origin of a URL. A port that is not named is that of the scheme.
func originOf(u *url.URL) origin {
	usual := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	return origin{u.Scheme, u.Hostname(), cmp.Or(u.Port(), usual)}
}
