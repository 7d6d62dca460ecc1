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
	for name, test := range map[string]struct {
		action v1.HTTPGetAction
		want   string
	}{
		"host of IPv6":     {action: v1.HTTPGetAction{Path: "/bye", Port: port, Host: "fd00::1"}, want: "http://[fd00::1]:80/bye"},
		"no path":          {action: v1.HTTPGetAction{Port: port}, want: "http://127.0.0.1:80"},
		"invalid path":     {action: v1.HTTPGetAction{Path: "/a%zz", Port: port}, want: "http://127.0.0.1:80/a%25zz"},
		"path with a host": {action: v1.HTTPGetAction{Path: "https://evil/bye", Port: port}, want: "http://127.0.0.1:80/bye"},
		"host with a zone": {action: v1.HTTPGetAction{Path: "/", Port: port, Host: "fe80::1%eth0"}, want: "http://[fe80::1%25eth0]:80/"},
		// hookPod's container has a port 9090 with the name "90".
		"port named like a number": {action: v1.HTTPGetAction{Path: "/", Port: intstr.FromString("90")}, want: "http://127.0.0.1:9090/"},
		"port number as a string":  {action: v1.HTTPGetAction{Path: "/", Port: intstr.FromString("81")}, want: "http://127.0.0.1:81/"},
	} {
		t.Run(name, func(t *testing.T) {
			request := sentRequest(t, lifecycle.HandlerRunnerOptions{}, test.action)
			require.Equal(t, http.MethodGet, request.Method)
			require.Equal(t, test.want, request.URL.String())
			require.True(t, strings.HasPrefix(request.URL.RequestURI(), "/"), "the path of an HTTP request begins with a slash")
		})
	}
}

// An invalid port fails the hook with the kubelet's text, and no request is sent.
func TestHTTPHookInvalidPort(t *testing.T) {
	for name, test := range map[string]struct {
		port intstr.IntOrString
		want string
	}{
		"zero":         {port: intstr.FromInt32(0), want: "invalid port number: 0"},
		"negative":     {port: intstr.FromInt32(-1), want: "invalid port number: -1"},
		"too large":    {port: intstr.FromInt32(65536), want: "invalid port number: 65536"},
		"text of zero": {port: intstr.FromString("0"), want: "invalid port number: 0"},
		"empty":        {port: intstr.FromString(""), want: `strconv.Atoi: parsing "": invalid syntax`},
		"unknown name": {port: intstr.FromString("http"), want: `strconv.Atoi: parsing "http": invalid syntax`},
	} {
		t.Run(name, func(t *testing.T) {
			doer := &recordingDoer{}
			action := v1.HTTPGetAction{Path: "/bye", Port: test.port}
			message, err := runHook(t.Context(), lifecycle.HandlerRunnerOptions{HTTP: doer}, httpHandler(action))
			require.EqualError(t, err, test.want)
			require.Equal(t, `HTTP lifecycle hook (/bye) for Container "server" in Pod "web_shop(42)" failed - error: `+test.want, message)
			require.Empty(t, doer.requests)
		})
	}
}

// A hook without a host goes to the pod's IP: what the option PodIP returns, or without this option that of the status. Without
// an IP the hook fails. A hook with a host needs no IP.
func TestHTTPHookUsesThePodIP(t *testing.T) {
	const noIP = "failed to find networking container: web_shop(42)"
	optionReturns := func(ip string, err error) func(context.Context, *v1.Pod) (string, error) {
		return func(context.Context, *v1.Pod) (string, error) { return ip, err }
	}
	for name, test := range map[string]struct {
		host   string // of the hook
		status v1.PodStatus
		option func(context.Context, *v1.Pod) (string, error) // PodIP; nil: the runner has none
		want   string                                         // the host and port of the request
		err    string
	}{
		"first of podIPs":                  {status: v1.PodStatus{PodIP: "10.0.0.9", PodIPs: []v1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}}}, want: "10.0.0.1:80"},
		"podIP alone":                      {status: v1.PodStatus{PodIP: "10.0.0.9"}, want: "10.0.0.9:80"},
		"no IP in the status":              {err: noIP},
		"the option before the status":     {status: v1.PodStatus{PodIP: "10.0.0.9"}, option: optionReturns("fd00::2", nil), want: "[fd00::2]:80"},
		"the option returns no IP":         {status: v1.PodStatus{PodIP: "10.0.0.9"}, option: optionReturns("", nil), err: noIP},
		"the option fails":                 {option: optionReturns("", errors.New("no status yet")), err: "no status yet"},
		"own host, the option is not used": {host: "db.example", option: optionReturns("", errors.New("PodIP was called")), want: "db.example:80"},
		"invalid host":                     {host: "a b", err: `parse "http://a%20b:80/": invalid URL escape "%20"`},
	} {
		t.Run(name, func(t *testing.T) {
			pod, container := hookPod()
			pod.Status = test.status
			doer := &recordingDoer{}
			runner := lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{HTTP: doer, PodIP: test.option})
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
