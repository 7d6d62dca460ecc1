package hookhttp

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Whatever scheme, path, port and header a hook has, its request goes to the host that Sender.request is called with, or
// there is an error and no request. Most seeds try to redirect the request to evil.example.
func FuzzRequest(f *testing.F) {
	f.Add("10.0.0.1", "80", "HTTP", "/bye?a=b#c", "Host", "shop.example")
	f.Add("fe80::1%eth0", "admin", "", "//evil.example/bye", "X-A", "1\r\nX-B: 2")
	f.Add("db.example", "65535", "http://evil.example/?", "https://u:p@evil.example/", "Accept", "")
	f.Add("a@b", "-1", "file", "http:evil.example", "", "x")
	f.Add("a b", "080", "HTTPS", "\r\n", "User-Agent", "")
	f.Add("[::1]", "0x50", "x", "/%zz/../..", "Content-Length", "5")
	for _, path := range []string{"///evil.example/bye", "//evil.example:81@other.example/bye", "@evil.example/", "/ HTTP/1.1\r\nHost: evil.example\r\n\r\n"} {
		f.Add("10.0.0.1", "80", "", path, "", "")
	}
	for _, host := range []string{"10.0.0.1@evil.example", "evil.example/", "evil.example#", "10.0.0.1\r\nX: y", "evil.example:81"} {
		f.Add(host, "80", "http://evil.example#", "/bye", "", "")
		f.Add(host, "80", "", "/bye", "", "")
	}
	f.Fuzz(func(t *testing.T, host, port, scheme, path, header, value string) {
		container := &v1.Container{Ports: []v1.ContainerPort{{Name: "admin", ContainerPort: 8080}}}
		action := &v1.HTTPGetAction{Port: intstr.Parse(port), Scheme: v1.URIScheme(scheme), Path: path, HTTPHeaders: []v1.HTTPHeader{{Name: header, Value: value}}}
		sender := &Sender{UserAgent: "agent"}
		req, err := sender.request(t.Context(), host, container, action)
		if err != nil {
			require.Nil(t, req)
			return
		}
		hostAndColon := net.JoinHostPort(host, "")
		require.True(t, strings.HasPrefix(req.URL.Host, hostAndColon), req.URL.Host)
		require.Equal(t, "GET", req.Method)
		require.Equal(t, req.Header.Get("Host"), req.Host)
	})
}
