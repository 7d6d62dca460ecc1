package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"

	v1 "k8s.io/api/core/v1"
)

// mostDrained is how much of a response's body is read, in bytes, before the
// connection is closed (the kubelet's discardHTTPRespBody).
const mostDrained = 10 << 10

// httpHook sends a GET request to the hook's container, or to where it says.
type httpHook struct {
	sender       httpSender
	podIP        func(context.Context, *v1.Pod) (string, error)
	userAgent    string
	failOnStatus bool
}

// newHTTPHook fills in what opts leave open.
func newHTTPHook(opts HandlerRunnerOptions) httpHook {
	h := httpHook{
		sender:       httpSender{doer: opts.HTTP, events: opts.Events, metrics: opts.Metrics},
		podIP:        opts.PodIP,
		userAgent:    cmp.Or(opts.UserAgent, defaultUserAgent),
		failOnStatus: opts.FailOnHTTPStatus,
	}
	if h.sender.doer == nil {
		h.sender.doer = newHTTPClient(nil)
	}
	if h.podIP == nil {
		h.podIP = statusIP
	}
	return h
}

// run sends the request under ctx and reads its answer. Any answer is a success,
// as in the kubelet, unless the options ask for one of 2xx.
func (h *httpHook) run(ctx context.Context, pod *v1.Pod, container *v1.Container, action *v1.HTTPGetAction) error {
	req, err := h.request(ctx, pod, container, action)
	if err != nil {
		return err
	}
	resp, err := h.sender.send(req, pod)
	if err != nil || resp == nil { // no error and no response: a doer of a test, in the kubelet a success too
		return err
	}
	discard(resp)
	if h.failOnStatus && resp.StatusCode/100 != 2 {
		return fmt.Errorf("unexpected HTTP status: %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return nil
}

// discard reads a short body to its end, so that the server is not cut off in
// the middle of it, and closes it. The answer has come already: what goes wrong
// in its body is no failure of the hook.
func discard(resp *http.Response) {
	if resp.Body == nil {
		return // not from net/http
	}
	if resp.ContentLength <= mostDrained {
		_, _ = io.CopyN(io.Discard, resp.Body, mostDrained) // see above
	}
	_ = resp.Body.Close() // see above
}
