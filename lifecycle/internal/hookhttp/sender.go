// Package hookhttp sends the requests of httpGet hooks as the kubelet does: what a request
// is made of, which answer is a success, and the client that is used for it.
//
//	sender := hookhttp.Sender{Doer: hookhttp.NewClient(nil), UserAgent: "kube-lifecycle/1.37"}
//	plain, err := sender.Get(ctx, podIP, pod, container, handler.HTTPGet)
package hookhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// mostDrained is how much of a response's body is read, in bytes, before the
// connection is closed (the kubelet's discardHTTPRespBody).
const mostDrained = 10 << 10

// Doer sends a request; *http.Client is one.
type Doer interface {
	Do(req *http.Request) (*http.Response, error)
}

// Sender sends hooks. It may be used by any number of goroutines.
type Sender struct {
	Doer         Doer
	UserAgent    string // where a hook does not name its own
	FailOnStatus bool   // a status other than 2xx is an error
}

// Get sends the request of a hook to a host under ctx and reads its answer. Any answer is
// a success, as in the kubelet, unless one of 2xx is asked for. plain is the HOST:PORT of a
// hook of HTTPS that was answered in plain HTTP, "" for others. pod is for the log; container, for the names of its
// ports, may be nil.
func (s *Sender) Get(ctx context.Context, host string, pod *v1.Pod, container *v1.Container, action *v1.HTTPGetAction) (plain string, err error) {
	req, err := s.request(ctx, host, container, action)
	if err != nil {
		return "", err
	}
	resp, plain, err := s.send(req, pod)
	if err != nil || resp == nil { // no error and no response: a doer of a test, in the kubelet a success too
		return plain, err
	}
	// A short body is read to its end, so that the server is not cut off in the middle of
	// it. The answer has come already: what goes wrong in its body is no failure.
	if resp.Body != nil && resp.ContentLength <= mostDrained {
		_, _ = io.CopyN(io.Discard, resp.Body, mostDrained) // see above
	}
	if resp.Body != nil { // else it is not from net/http
		_ = resp.Body.Close() // see above
	}
	if s.FailOnStatus && resp.StatusCode/100 != 2 {
		return plain, fmt.Errorf("unexpected HTTP status: %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return plain, nil
}

// send sends a request, and once more over HTTP, without the credentials that this would
// give away, if an HTTPS server turns out to speak plain HTTP; that is known by the text,
// as in the kubelet, since a doer need not be of net/http. It returns the first answer it
// gets. A retry that fails leaves the first error, which names the cause, and is only
// logged.
func (s *Sender) send(req *http.Request, pod *v1.Pod) (resp *http.Response, plain string, err error) {
	resp, err = s.Doer.Do(req)
	var urlErr *url.Error
	if !errors.As(err, &urlErr) || !strings.Contains(urlErr.Err.Error(), "server gave HTTP response to HTTPS client") {
		return resp, "", err
	}
	again := req.Clone(req.Context())
	again.URL.Scheme = "http"
	again.Header.Del("Authorization")
	resp, retryErr := s.Doer.Do(again)
	if retryErr != nil {
		klog.FromContext(req.Context()).V(1).Info("HTTPS lifecycle hook was answered in HTTP, and the retry with HTTP failed", "pod", klog.KObj(pod), "host", req.URL.Host, "err", retryErr)
		return nil, "", err
	}
	return resp, req.URL.Host, nil
}
