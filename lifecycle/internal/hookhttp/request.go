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

// request returns the request that the kubelet makes for an action; it is always HTTP/1.1. A path without a leading slash
// gets one from url.URL.String.
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
	if req.URL.Host != hostPort { // an unvalidated scheme may contain another host
		return nil, fmt.Errorf("scheme and path point to host %q instead of %q", req.URL.Host, hostPort)
	}
	s.setHeaders(req, action.HTTPHeaders)
	return req, nil
}

// setHeaders sets the headers of a hook, which may have one header several times. The hook's Host, User-Agent and Accept
// replace the defaults; an empty Accept means that none is sent.
func (s *Sender) setHeaders(req *http.Request, headers []v1.HTTPHeader) {
	req.Header = http.Header{}
	for _, header := range headers {
		req.Header.Add(header.Name, header.Value)
	}
	req.Host = req.Header.Get("Host") // "": net/http sends the URL's host
	for name, value := range map[string]string{"User-Agent": s.UserAgent, "Accept": "*/*"} {
		if _, isSet := req.Header[name]; !isSet {
			req.Header.Set(name, value)
		}
	}
	if req.Header.Get("Accept") == "" { // the hook has set it to ""
		req.Header.Del("Accept")
	}
}

// portOf returns the port number, between 1 and 65535, of a hook's port. A port that is a string is the name of
// a port of the container or, if none has this name, a number (the kubelet's ResolveContainerPort). container may
// be nil.
func portOf(port intstr.IntOrString, container *v1.Container) (number int, err error) {
	named := portNamed(container, port.StrVal)
	switch {
	case port.Type != intstr.String:
		number = int(port.IntVal)
	case named != nil:
		number = int(named.ContainerPort)
	default:
		if number, err = strconv.Atoi(port.StrVal); err != nil {
			return 0, err
		}
	}
	if number < 1 || number > 65535 {
		return 0, fmt.Errorf("invalid port number: %v", number)
	}
	return number, nil
}

// portNamed returns the container's port with this name; nil if there is none or the container is nil.
func portNamed(container *v1.Container, name string) *v1.ContainerPort {
	if container == nil {
		return nil
	}
	i := slices.IndexFunc(container.Ports, func(p v1.ContainerPort) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &container.Ports[i]
}

// hookURL returns the URL of an action. A path that cannot be parsed is used unparsed, so a query in it
// becomes part of the path. An empty scheme means http; the client refuses unknown schemes later.
func hookURL(action *v1.HTTPGetAction, hostPort string) *url.URL {
	u, err := url.Parse(action.Path)
	if err != nil {
		u = &url.URL{Path: action.Path}
	}
	u.Scheme = cmp.Or(string(action.Scheme), "http")
	u.Host = hostPort
	return u
}
