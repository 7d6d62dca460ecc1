package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
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
	discard(resp)
	if r.FailOnHTTPStatus && resp.StatusCode/100 != 2 {
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

// request is the kubelet's for the action: HTTP/1.1 always, as the protocol of an
// action is for probes. Its URL is written out and parsed again, which gives a
// path its leading slash.
func (r *handlerRunner) request(ctx context.Context, pod *v1.Pod, container *v1.Container, action *v1.HTTPGetAction) (*http.Request, error) {
	host, err := r.host(ctx, pod, action.Host)
	if err != nil {
		return nil, err
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
	req.Header = r.headers(action.HTTPHeaders)
	req.Host = req.Header.Get("Host")
	return req, nil
}

// host is the one that the action names, else the pod's address.
func (r *handlerRunner) host(ctx context.Context, pod *v1.Pod, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	ip, err := r.PodIP(ctx, pod)
	if err != nil {
		return "", err
	}
	if ip == "" {
		return "", fmt.Errorf("failed to find networking container: %s", podText(pod))
	}
	return ip, nil
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
func portOf(port intstr.IntOrString, container *v1.Container) (int, error) {
	number := int(port.IntVal)
	if port.Type == intstr.String {
		var err error
		if number, err = namedPort(port.StrVal, container); err != nil {
			return 0, err
		}
	}
	if number < 1 || number > 65535 {
		return 0, fmt.Errorf("invalid port number: %v", number)
	}
	return number, nil
}

// namedPort looks for name among the container's ports before it reads it as a
// number.
func namedPort(name string, container *v1.Container) (int, error) {
	if container != nil {
		for i := range container.Ports {
			if container.Ports[i].Name == name {
				return int(container.Ports[i].ContainerPort), nil
			}
		}
	}
	return strconv.Atoi(name)
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

// headers are those of the action, repeated ones included. An Accept that is
// listed as empty is not sent at all.
func (r *handlerRunner) headers(listed []v1.HTTPHeader) http.Header {
	headers := http.Header{}
	for _, header := range listed {
		headers.Add(header.Name, header.Value)
	}
	if _, ok := headers["User-Agent"]; !ok {
		headers.Set("User-Agent", r.UserAgent)
	}
	if _, ok := headers["Accept"]; !ok {
		headers.Set("Accept", "*/*")
	} else if headers.Get("Accept") == "" {
		headers.Del("Accept")
	}
	return headers
}
