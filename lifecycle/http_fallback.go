package lifecycle

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/metrics"
)

// reasonHTTPFallback is the reason of the kubelet's event for an HTTPS hook that
// was answered in plain HTTP.
const reasonHTTPFallback = "LifecycleHTTPFallback"

// httpSender sends a request, and once more over HTTP if an HTTPS server turns
// out to speak plain HTTP.
type httpSender struct {
	doer    HTTPDoer
	events  EventRecorder
	metrics *metrics.Lifecycle
}

// send returns the first answer it gets. A retry that fails leaves the first
// error, which names the cause, and is only logged.
func (s *httpSender) send(req *http.Request, pod *v1.Pod) (*http.Response, error) {
	resp, err := s.doer.Do(req)
	if !answeredInHTTP(err) {
		return resp, err
	}
	resp, retryErr := s.doer.Do(overHTTP(req))
	if retryErr != nil {
		klog.FromContext(req.Context()).V(1).Info("HTTPS lifecycle hook was answered in HTTP, and the retry with HTTP failed", "pod", klog.KObj(pod), "host", req.URL.Host, "err", retryErr)
		return nil, err
	}
	s.recordFallback(req.URL.Host, pod)
	return resp, nil
}

// recordFallback counts a retry that succeeded and records its event.
func (s *httpSender) recordFallback(host string, pod *v1.Pod) {
	s.metrics.HTTPFallback()
	if s.events != nil && pod != nil {
		s.events.Event(pod, v1.EventTypeWarning, reasonHTTPFallback,
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
