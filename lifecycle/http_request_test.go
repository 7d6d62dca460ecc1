//go:build go1.25

package lifecycle_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// sentRequest returns the request that is sent for an action.
func sentRequest(t *testing.T, opts lifecycle.HandlerRunnerOptions, action v1.HTTPGetAction) *http.Request {
	t.Helper()
	doer := &recordingDoer{}
	opts.HTTP = doer
	_, err := runHook(t.Context(), opts, httpHandler(action))
	require.NoError(t, err)
	require.Len(t, doer.requests, 1)
	return doer.requests[0]
}

// The URL of a request is that of the kubelet for each kind of host, path, port and scheme.
func TestHTTPHookURL(t *testing.T) {
	port := intstr.FromInt32(80)
	tests := map[string]struct {
		action v1.HTTPGetAction
		want   string
	}{
		"host of the pod":         {v1.HTTPGetAction{Path: "/bye", Port: port}, "http://127.0.0.1:80/bye"},
		"own host":                {v1.HTTPGetAction{Path: "/bye", Port: port, Host: "db.example"}, "http://db.example:80/bye"},
		"host of IPv6":            {v1.HTTPGetAction{Path: "/bye", Port: port, Host: "fd00::1"}, "http://[fd00::1]:80/bye"},
		"no path":                 {v1.HTTPGetAction{Port: port}, "http://127.0.0.1:80"},
		"no leading slash":        {v1.HTTPGetAction{Path: "bye", Port: port}, "http://127.0.0.1:80/bye"},
		"query and fragment":      {v1.HTTPGetAction{Path: "/bye?a=b&c#d", Port: port}, "http://127.0.0.1:80/bye?a=b&c#d"},
		"invalid path":            {v1.HTTPGetAction{Path: "/a%zz", Port: port}, "http://127.0.0.1:80/a%25zz"},
		"path with a host":        {v1.HTTPGetAction{Path: "https://evil/bye", Port: port}, "http://127.0.0.1:80/bye"},
		"host with a zone":        {v1.HTTPGetAction{Path: "/", Port: port, Host: "fe80::1%eth0"}, "http://[fe80::1%25eth0]:80/"},
		"scheme in upper case":    {v1.HTTPGetAction{Path: "/", Port: port, Scheme: v1.URISchemeHTTPS}, "https://127.0.0.1:80/"},
		"unknown scheme":          {v1.HTTPGetAction{Path: "/", Port: port, Scheme: "Gopher"}, "gopher://127.0.0.1:80/"},
		"port by name":            {v1.HTTPGetAction{Path: "/", Port: intstr.FromString("admin")}, "http://127.0.0.1:8080/"},
		"port number as a string": {v1.HTTPGetAction{Path: "/", Port: intstr.FromString("81")}, "http://127.0.0.1:81/"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			req := sentRequest(t, lifecycle.HandlerRunnerOptions{}, tt.action)
			require.Equal(t, http.MethodGet, req.Method)
			require.Equal(t, tt.want, req.URL.String())
			require.True(t, strings.HasPrefix(req.URL.RequestURI(), "/"), "the request path needs a leading slash")
		})
	}
}

// The container has a port 8080 that is named "81". A hook to the port "81" goes to 8080: a string is compared
// with the container's port names before it is parsed as a number.
func TestHTTPHookPortNamedLikeANumber(t *testing.T) {
	pod, container := hookPod()
	container.Ports[0].Name = "81"
	doer := &recordingDoer{}
	runner := lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{HTTP: doer})
	_, err := runner.Run(t.Context(), containerID, pod, container, httpHandler(v1.HTTPGetAction{Port: intstr.FromString("81")}))
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:8080", doer.requests[0].URL.Host)
}

// An invalid port fails the hook with the kubelet's text, and no request is sent.
func TestHTTPHookInvalidPort(t *testing.T) {
	tests := map[string]struct {
		port intstr.IntOrString
		want string
	}{
		"zero":         {intstr.FromInt32(0), "invalid port number: 0"},
		"negative":     {intstr.FromInt32(-1), "invalid port number: -1"},
		"too large":    {intstr.FromInt32(65536), "invalid port number: 65536"},
		"text of zero": {intstr.FromString("0"), "invalid port number: 0"},
		"empty":        {intstr.FromString(""), `strconv.Atoi: parsing "": invalid syntax`},
		"unknown name": {intstr.FromString("http"), `strconv.Atoi: parsing "http": invalid syntax`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			doer := &recordingDoer{}
			msg, err := runHook(t.Context(), lifecycle.HandlerRunnerOptions{HTTP: doer}, httpHandler(v1.HTTPGetAction{Path: "/bye", Port: tt.port}))
			require.EqualError(t, err, tt.want)
			require.Equal(t, `HTTP lifecycle hook (/bye) for Container "server" in Pod "web_shop(42)" failed - error: `+tt.want, msg)
			require.Empty(t, doer.requests)
		})
	}
}

// A hook without a host goes to the pod's IP: that of the status, or what the PodIP option returns. Without
// an IP the hook fails.
func TestHTTPHookUsesThePodIP(t *testing.T) {
	action := v1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80)}
	broken := errors.New("no status yet")
	type podIP = func(context.Context, *v1.Pod) (string, error)
	tests := map[string]struct {
		status v1.PodStatus
		podIP  podIP
		host   string
		err    string
	}{
		"first of podIPs":    {v1.PodStatus{PodIP: "10.0.0.9", PodIPs: []v1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}}}, nil, "10.0.0.1:80", ""},
		"podIP alone":        {v1.PodStatus{PodIP: "10.0.0.9"}, nil, "10.0.0.9:80", ""},
		"none":               {v1.PodStatus{}, nil, "", "failed to find networking container: web_shop(42)"},
		"PodIP":              {v1.PodStatus{PodIP: "10.0.0.9"}, func(context.Context, *v1.Pod) (string, error) { return "fd00::2", nil }, "[fd00::2]:80", ""},
		"PodIP returns none": {v1.PodStatus{PodIP: "10.0.0.9"}, func(context.Context, *v1.Pod) (string, error) { return "", nil }, "", "failed to find networking container: web_shop(42)"},
		"PodIP fails":        {v1.PodStatus{PodIP: "10.0.0.9"}, func(context.Context, *v1.Pod) (string, error) { return "", broken }, "", "no status yet"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pod, container := hookPod()
			pod.Status = tt.status
			doer := &recordingDoer{}
			runner := lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{HTTP: doer, PodIP: tt.podIP})
			_, err := runner.Run(t.Context(), containerID, pod, container, httpHandler(action))
			if tt.err != "" {
				require.EqualError(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.host, doer.requests[0].URL.Host)
		})
	}
}

// A hook with a host of its own needs no pod IP. It works even if PodIP would return an error.
func TestHTTPHookWithAHostDoesNotCallPodIP(t *testing.T) {
	opts := lifecycle.HandlerRunnerOptions{PodIP: func(context.Context, *v1.Pod) (string, error) {
		return "", errors.New("PodIP was called")
	}}
	req := sentRequest(t, opts, v1.HTTPGetAction{Host: "db.example", Port: intstr.FromInt32(80)})
	require.Equal(t, "db.example:80", req.URL.Host)
}

// The headers of a request are those of the hook. User-Agent and Accept have the kubelet's defaults if the
// hook has none.
func TestHTTPHookHeaders(t *testing.T) {
	tests := map[string]struct {
		userAgent string
		listed    []v1.HTTPHeader
		want      http.Header
		host      string
	}{
		"defaults": {
			want: http.Header{"User-Agent": {"kube-lifecycle/1.37"}, "Accept": {"*/*"}},
		},
		"user agent of the runner": {
			userAgent: "node-agent/7",
			want:      http.Header{"User-Agent": {"node-agent/7"}, "Accept": {"*/*"}},
		},
		"repeated, in any case": {
			listed: []v1.HTTPHeader{{Name: "x-a", Value: "1"}, {Name: "X-A", Value: "2"}},
			want:   http.Header{"X-A": {"1", "2"}, "User-Agent": {"kube-lifecycle/1.37"}, "Accept": {"*/*"}},
		},
		"headers of the hook": {
			listed: []v1.HTTPHeader{{Name: "User-Agent", Value: "curl"}, {Name: "accept", Value: "text/plain"}},
			want:   http.Header{"User-Agent": {"curl"}, "Accept": {"text/plain"}},
		},
		"an empty Accept": {
			listed: []v1.HTTPHeader{{Name: "Accept"}},
			want:   http.Header{"User-Agent": {"kube-lifecycle/1.37"}},
		},
		"a host": {
			listed: []v1.HTTPHeader{{Name: "Host", Value: "shop.example"}},
			want:   http.Header{"Host": {"shop.example"}, "User-Agent": {"kube-lifecycle/1.37"}, "Accept": {"*/*"}},
			host:   "shop.example",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			req := sentRequest(t, lifecycle.HandlerRunnerOptions{UserAgent: tt.userAgent}, v1.HTTPGetAction{Port: intstr.FromInt32(80), HTTPHeaders: tt.listed})
			require.Equal(t, tt.want, req.Header)
			require.Equal(t, tt.host, req.Host)
		})
	}
}

// A host with a space fails the hook, and no request is sent.
func TestHTTPHookInvalidHost(t *testing.T) {
	doer := &recordingDoer{}
	_, err := runHook(t.Context(), lifecycle.HandlerRunnerOptions{HTTP: doer}, httpHandler(v1.HTTPGetAction{Host: "a b", Port: intstr.FromInt32(80)}))
	require.ErrorContains(t, err, `parse "http://a%20b:80"`)
	require.Empty(t, doer.requests)
}
