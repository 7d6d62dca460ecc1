package lifecycle

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/klog/v2"
)

// mostDrained is how much of a response's body is read, in bytes, before the
// connection is closed (the kubelet's discardHTTPRespBody).
const mostDrained = 10 << 10

// get sends the request of a hook under ctx and reads its answer. Any answer is a
// success, as in the kubelet, unless the options ask for one of 2xx.
func (r *handlerRunner) get(ctx context.Context, pod *v1.Pod, container *v1.Container, action *v1.HTTPGetAction) error {
	req, err := r.request(ctx, pod, container, action)
	if err != nil {
		return err
	}
	resp, err := r.send(req, pod)
	if err != nil || resp == nil { // no error and no response: a doer of a test, in the kubelet a success too
		return err
	}
	// A short body is read to its end, so that the server is not cut off in the middle of
	// it. The answer has come already: what goes wrong in its body is no failure.
	if resp.Body != nil && resp.ContentLength <= mostDrained {
		_, _ = io.CopyN(io.Discard, resp.Body, mostDrained) // see above
	}
	if resp.Body != nil { // else it is not from net/http
		_ = resp.Body.Close() // see above
	}
	if r.FailOnHTTPStatus && resp.StatusCode/100 != 2 {
		return fmt.Errorf("unexpected HTTP status: %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return nil
}

// request is the kubelet's for the action: HTTP/1.1 always, as the protocol of an
// action is for probes. Its URL is written out and parsed again, which gives a
// path its leading slash. Of the headers, which may be repeated, an Accept that is listed
// as empty is not sent at all.
func (r *handlerRunner) request(ctx context.Context, pod *v1.Pod, container *v1.Container, action *v1.HTTPGetAction) (*http.Request, error) {
	host, err := action.Host, error(nil)
	if host == "" {
		host, err = r.PodIP(ctx, pod)
	}
	if err != nil {
		return nil, err
	}
	if host == "" {
		return nil, fmt.Errorf("failed to find networking container: %s", podText(pod))
	}
	port, err := portOf(action.Port, container)
	if err != nil {
		return nil, err
	}
	address := hookURL(action, net.JoinHostPort(host, strconv.Itoa(port)))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{}
	for _, header := range action.HTTPHeaders {
		req.Header.Add(header.Name, header.Value)
	}
	req.Host = req.Header.Get("Host")
	for name, usual := range map[string]string{"User-Agent": r.UserAgent, "Accept": "*/*"} {
		if _, listed := req.Header[name]; !listed {
			req.Header.Set(name, usual)
		}
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Del("Accept")
	}
	return req, nil
}

// statusIP is the first address in the pod's status, "" if it has none.
func statusIP(_ context.Context, pod *v1.Pod) (string, error) {
	switch {
	case pod == nil:
		return "", nil
	case len(pod.Status.PodIPs) > 0:
		return pod.Status.PodIPs[0].IP, nil
	default:
		return pod.Status.PodIP, nil
	}
}

// portOf resolves a port as the kubelet's ResolveContainerPort does: a string is
// the name of one of the container's ports, else a number.
func portOf(port intstr.IntOrString, container *v1.Container) (number int, err error) {
	named := func(p v1.ContainerPort) bool { return p.Name == port.StrVal }
	if number = int(port.IntVal); port.Type == intstr.String {
		if container == nil {
			container = &v1.Container{}
		}
		if i := slices.IndexFunc(container.Ports, named); i >= 0 {
			number = int(container.Ports[i].ContainerPort)
		} else if number, err = strconv.Atoi(port.StrVal); err != nil {
			return 0, err
		}
	}
	if number < 1 || number > 65535 {
		return 0, fmt.Errorf("invalid port number: %v", number)
	}
	return number, nil
}

// hookURL has the action's path, query and fragment; a path that is no URL
// reference is taken as it is. An empty scheme is http, and one that nobody knows
// is left for the client to refuse; parsing puts it into lower case.
func hookURL(action *v1.HTTPGetAction, hostPort string) *url.URL {
	u, err := url.Parse(action.Path)
	if err != nil {
		u = &url.URL{Path: action.Path}
	}
	u.Scheme = cmp.Or(string(action.Scheme), "http")
	u.Host = hostPort
	return u
}

// send sends a request, and once more over HTTP, without the credentials that this would
// give away, if an HTTPS server turns out to speak plain HTTP; that is known by the text,
// as in the kubelet, since a doer need not be of net/http. It returns the first answer it
// gets. A retry that fails leaves the first error, which names the cause, and is only
// logged.
func (r *handlerRunner) send(req *http.Request, pod *v1.Pod) (*http.Response, error) {
	resp, err := r.HTTP.Do(req)
	var urlErr *url.Error
	if !errors.As(err, &urlErr) || !strings.Contains(urlErr.Err.Error(), "server gave HTTP response to HTTPS client") {
		return resp, err
	}
	plain := req.Clone(req.Context())
	plain.URL.Scheme = "http"
	plain.Header.Del("Authorization")
	resp, retryErr := r.HTTP.Do(plain)
	if retryErr != nil {
		klog.FromContext(req.Context()).V(1).Info("HTTPS lifecycle hook was answered in HTTP, and the retry with HTTP failed", "pod", klog.KObj(pod), "host", req.URL.Host, "err", retryErr)
		return nil, err
	}
	r.Metrics.HTTPFallback()
	if r.Events != nil && pod != nil {
		r.Events.Event(pod, v1.EventTypeWarning, "LifecycleHTTPFallback",
			fmt.Sprintf("request to HTTPS lifecycle hook %s got HTTP response, retry with HTTP succeeded", req.URL.Host))
	}
	return resp, nil
}

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
