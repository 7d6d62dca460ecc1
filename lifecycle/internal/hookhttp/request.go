package hookhttp

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// request is the kubelet's for the action: HTTP/1.1 always, as the protocol of an
// action is for probes. Its URL is written out and parsed again, which gives a
// path its leading slash. Of the headers, which may be repeated, an Accept that is listed
// as empty is not sent at all.
func (s *Sender) request(ctx context.Context, host string, container *v1.Container, action *v1.HTTPGetAction) (*http.Request, error) {
	port, err := portOf(action.Port, container)
	if err != nil {
		return nil, err
	}
	hostPort := net.JoinHostPort(host, strconv.Itoa(port))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, hookURL(action, hostPort).String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	// A scheme that nobody has validated can have a host of its own in it.
	if req.URL.Host != hostPort {
		return nil, fmt.Errorf("scheme and path lead to host %q instead of %q", req.URL.Host, hostPort)
	}
	req.Header = http.Header{}
	for _, header := range action.HTTPHeaders {
		req.Header.Add(header.Name, header.Value)
	}
	req.Host = req.Header.Get("Host")
	for name, usual := range map[string]string{"User-Agent": s.UserAgent, "Accept": "*/*"} {
		if _, listed := req.Header[name]; !listed {
			req.Header.Set(name, usual)
		}
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Del("Accept")
	}
	return req, nil
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
