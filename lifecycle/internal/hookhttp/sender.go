// Package hookhttp sends the requests of httpGet hooks as the kubelet does. It makes the request,
// sends it, and decides which response is a success.
//
//	sender := hookhttp.Sender{Doer: hookhttp.NewClient(nil), UserAgent: "kube-lifecycle/1.37"}
//	plainHost, err := sender.Get(ctx, podIP, pod, container, handler.HTTPGet)
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

// maxBody is how many bytes of a response body are read and discarded before the connection is closed (the
// kubelet's discardHTTPRespBody). A short response thus arrives completely, and an endless one does not occupy the
// agent.
const maxBody = 10 << 10

// Doer sends a request; *http.Client implements it.
type Doer interface {
	Do(req *http.Request) (*http.Response, error)
}

// Sender sends the requests of hooks. It is safe for concurrent use.
type Sender struct {
	Doer         Doer
	UserAgent    string // for hooks without this header
	FailOnStatus bool   // a status other than 2xx is an error
}

// Get sends the request of an httpGet hook to host, and waits for the response. Any response is a
// success, as in the kubelet, unless FailOnStatus is set. If the server answered an HTTPS hook in plain HTTP,
// plainHost is its HOST:PORT, else "". pod is for the log. container names the ports, and may be nil.
func (s *Sender) Get(ctx context.Context, host string, pod *v1.Pod, container *v1.Container, action *v1.HTTPGetAction) (plainHost string, err error) {
	req, err := s.request(ctx, host, container, action)
	if err != nil {
		return "", err
	}
	resp, plainHost, err := s.send(req, pod)
	if err != nil || resp == nil { // the Doer of a test may return neither, as in the kubelet's tests
		return plainHost, err
	}
	if resp.Body != nil { // a Doer other than net/http may leave it nil
		if resp.ContentLength <= maxBody { // also -1, an unknown length
			_, _ = io.CopyN(io.Discard, resp.Body, maxBody) // errors of the body do not matter: only the status counts
		}
		_ = resp.Body.Close() // an error does not matter either
	}
	if s.FailOnStatus && resp.StatusCode/100 != 2 {
		return plainHost, fmt.Errorf("unexpected HTTP status: %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return plainHost, nil
}

// send sends a request and returns its response. If the server answers an HTTPS request in plain HTTP,
// send sends the request again over HTTP, without the Authorization header, which anybody on the network
// could read. plainHost is then the server's HOST:PORT, else "". If the second request fails, its error is logged and
// the first error is returned.
func (s *Sender) send(req *http.Request, pod *v1.Pod) (resp *http.Response, plainHost string, err error) {
	resp, err = s.Doer.Do(req)
	var urlErr *url.Error
	// Compare the text, as the kubelet does: the error of a Doer other than net/http may have another type.
	isPlainAnswer := errors.As(err, &urlErr) && strings.Contains(urlErr.Err.Error(), "server gave HTTP response to HTTPS client")
	if !isPlainAnswer {
		return resp, "", err
	}
	plainReq := req.Clone(req.Context())
	plainReq.URL.Scheme = "http"
	plainReq.Header.Del("Authorization")
	resp, retryErr := s.Doer.Do(plainReq)
	if retryErr != nil {
		klog.FromContext(req.Context()).V(1).Info("Server answered HTTPS lifecycle hook in HTTP, and the retry with HTTP failed", "pod", klog.KObj(pod), "host", req.URL.Host, "err", retryErr)
		return nil, "", err
	}
	return resp, req.URL.Host, nil
}
