package lifecycle

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
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

// reasonHTTPFallback is the reason of the kubelet's event for an HTTPS hook that
// was answered in plain HTTP.
const reasonHTTPFallback = "LifecycleHTTPFallback"

// send sends a request, and once more over HTTP if an HTTPS server turns out to speak
// plain HTTP. It returns the first answer it gets. A retry that fails leaves the first
// error, which names the cause, and is only logged.
func (r *handlerRunner) send(req *http.Request, pod *v1.Pod) (*http.Response, error) {
	resp, err := r.HTTP.Do(req)
	if !answeredInHTTP(err) {
		return resp, err
	}
	resp, retryErr := r.HTTP.Do(overHTTP(req))
	if retryErr != nil {
		klog.FromContext(req.Context()).V(1).Info("HTTPS lifecycle hook was answered in HTTP, and the retry with HTTP failed", "pod", klog.KObj(pod), "host", req.URL.Host, "err", retryErr)
		return nil, err
	}
	r.recordFallback(req.URL.Host, pod)
	return resp, nil
}

// recordFallback counts a retry that succeeded and records its event.
func (r *handlerRunner) recordFallback(host string, pod *v1.Pod) {
	r.Metrics.HTTPFallback()
	if r.Events != nil && pod != nil {
		r.Events.Event(pod, v1.EventTypeWarning, reasonHTTPFallback,
			fmt.Sprintf("request to HTTPS lifecycle hook %s got HTTP response, retry with HTTP succeeded", host))
	}
}

// overHTTP is req over HTTP, without the credentials that it would give away.
func overHTTP(req *http.Request) *http.Request {
	plain := req.Clone(req.Context())
	plain.URL.Scheme = "http"
	plain.Header.Del("Authorization")
	return plain
}

// answeredInHTTP tells whether an HTTPS request failed because the server
// answered in plain HTTP. It looks at the text, as the kubelet does: a doer need
// not be of net/http.
func answeredInHTTP(err error) bool {
	var urlErr *url.Error
	ok := errors.As(err, &urlErr)
	return ok && strings.Contains(urlErr.Err.Error(), "server gave HTTP response to HTTPS client")
}
