package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// request is the kubelet's for the action: HTTP/1.1 always, as the protocol of an
// action is for probes. Its URL is written out and parsed again, which gives a
// path its leading slash.
func (h *httpHook) request(ctx context.Context, pod *v1.Pod, container *v1.Container, action *v1.HTTPGetAction) (*http.Request, error) {
	host, err := h.host(ctx, pod, action.Host)
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
	req.Header = h.headers(action.HTTPHeaders)
	req.Host = req.Header.Get("Host")
	return req, nil
}

// host is the one that the action names, else the pod's address.
func (h *httpHook) host(ctx context.Context, pod *v1.Pod, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	ip, err := h.podIP(ctx, pod)
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
func (h *httpHook) headers(listed []v1.HTTPHeader) http.Header {
	headers := http.Header{}
	for _, header := range listed {
		headers.Add(header.Name, header.Value)
	}
	if _, ok := headers["User-Agent"]; !ok {
		headers.Set("User-Agent", h.userAgent)
	}
	if _, ok := headers["Accept"]; !ok {
		headers.Set("Accept", "*/*")
	} else if headers.Get("Accept") == "" {
		headers.Del("Accept")
	}
	return headers
}
