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

// The URL of a request is that of the kubelet for each kind of host, path and port. testdata/hooks.yaml has the kubelet's
// own cases.
func TestHTTPHookURL(t *testing.T) {
	port := intstr.FromInt32(80)
	tests := map[string]struct {
		action v1.HTTPGetAction
		want   string
	}{
		"host of IPv6":             {v1.HTTPGetAction{Path: "/bye", Port: port, Host: "fd00::1"}, "http://[fd00::1]:80/bye"},
		"no path":                  {v1.HTTPGetAction{Port: port}, "http://127.0.0.1:80"},
		"invalid path":             {v1.HTTPGetAction{Path: "/a%zz", Port: port}, "http://127.0.0.1:80/a%25zz"},
		"path with a host":         {v1.HTTPGetAction{Path: "https://evil/bye", Port: port}, "http://127.0.0.1:80/bye"},
		"host with a zone":         {v1.HTTPGetAction{Path: "/", Port: port, Host: "fe80::1%eth0"}, "http://[fe80::1%25eth0]:80/"},
		"port named like a number": {v1.HTTPGetAction{Path: "/", Port: intstr.FromString("90")}, "http://127.0.0.1:9090/"}, // of hookPod
		"port number as a string":  {v1.HTTPGetAction{Path: "/", Port: intstr.FromString("81")}, "http://127.0.0.1:81/"},
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

// A hook without a host goes to the pod's IP: that of the status, or what the PodIP option returns. Without an IP the hook
// fails. A hook with a host of its own needs no IP.
func TestHTTPHookUsesThePodIP(t *testing.T) {
	const missing = "failed to find networking container: web_shop(42)"
	type podIP = func(context.Context, *v1.Pod) (string, error)
	returning := func(ip string, err error) podIP {
		return func(context.Context, *v1.Pod) (string, error) { return ip, err }
	}
	for name, test := range map[string]struct {
		host   string // of the hook
		status v1.PodStatus
		podIP  podIP
		want   string // the host and port of the request
		err    string
	}{
		"first of podIPs":    {status: v1.PodStatus{PodIP: "10.0.0.9", PodIPs: []v1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}}}, want: "10.0.0.1:80"},
		"podIP alone":        {status: v1.PodStatus{PodIP: "10.0.0.9"}, want: "10.0.0.9:80"},
		"none":               {err: missing},
		"PodIP":              {status: v1.PodStatus{PodIP: "10.0.0.9"}, podIP: returning("fd00::2", nil), want: "[fd00::2]:80"},
		"PodIP returns none": {status: v1.PodStatus{PodIP: "10.0.0.9"}, podIP: returning("", nil), err: missing},
		"PodIP fails":        {podIP: returning("", errors.New("no status yet")), err: "no status yet"},
		"own host":           {host: "db.example", podIP: returning("", errors.New("PodIP was called")), want: "db.example:80"},
		"invalid host":       {host: "a b", err: `parse "http://a%20b:80/": invalid URL escape "%20"`},
	} {
		t.Run(name, func(t *testing.T) {
			pod, container := hookPod()
			pod.Status = test.status
			doer := &recordingDoer{}
			runner := lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{HTTP: doer, PodIP: test.podIP})
			_, err := runner.Run(t.Context(), containerID, pod, container, httpHandler(v1.HTTPGetAction{Host: test.host, Path: "/", Port: intstr.FromInt32(80)}))
			if test.err != "" {
				require.EqualError(t, err, test.err)
				require.Empty(t, doer.requests)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, doer.requests[0].URL.Host)
		})
	}
}

// The headers of a request are those of the hook. User-Agent and Accept have the kubelet's defaults if the
// hook has none.
func TestHTTPHookHeaders(t *testing.T) {
	tests := map[string]struct {
		userAgent string
		listed    []v1.HTTPHeader
		want      http.Header
	}{
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
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			req := sentRequest(t, lifecycle.HandlerRunnerOptions{UserAgent: tt.userAgent}, v1.HTTPGetAction{Port: intstr.FromInt32(80), HTTPHeaders: tt.listed})
			require.Equal(t, tt.want, req.Header)
		})
	}
}
