//go:build go1.25

package lifecycle_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

const secretText = "s3cret"

// fixedResponse is an HTTPDoer that answers with status 500 and a body. Over HTTPS, it first returns an
// error that contains the body.
type fixedResponse struct{ body string }

func (d fixedResponse) Do(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "https" {
		return nil, &url.Error{Op: "Get", URL: req.URL.String(), Err: errors.New("server gave HTTP response to HTTPS client: " + d.body)}
	}
	return &http.Response{StatusCode: http.StatusInternalServerError, Status: "500 " + d.body, Header: http.Header{"Location": {d.body}}, Body: io.NopCloser(strings.NewReader(d.body)), ContentLength: -1}, nil
}

// A hook's output may be secret, and more people may read events and logs than may see it. A preStop and a postStart hook fail
// with an output that contains secretText. Their failures are recorded as events, but neither an event nor the log has the
// text.
func TestHookOutputIsNotInEventsOrLog(t *testing.T) {
	outputs := map[string]string{
		"a line": secretText + "\n", "long": strings.Repeat(secretText+" ", 100_000), "binary": "\x00\xff\x1b[2J" + secretText + "\x80",
		"a template": "%s %v {{.}} " + secretText, "lines": strings.Repeat("\n", 1000) + secretText + "\r\nE0101 " + secretText,
	}
	https := &v1.HTTPGetAction{
		Path: "/bye?key=" + secretText, Port: intstr.FromInt32(80), Host: "pod.example", Scheme: v1.URISchemeHTTPS,
		HTTPHeaders: []v1.HTTPHeader{{Name: "Authorization", Value: secretText}},
	}
	plain := https.DeepCopy()
	plain.Scheme = v1.URISchemeHTTP
	for name, output := range outputs {
		for kind, handler := range map[string]*v1.LifecycleHandler{
			"exec": {Exec: &v1.ExecAction{Command: []string{"curl", secretText}}}, "http": {HTTPGet: plain}, "https": {HTTPGet: https},
		} {
			t.Run(kind+" prints "+name, func(t *testing.T) {
				requireSecretIsKept(t, output, func(ctx context.Context, b *testBed, script lifecycletest.Script) { // preStop
					b.addMainWithHook("app", handler, script)
					result, err := b.KillPod(ctx, b.pod, lifecycle.Request{})
					require.NoError(b, err)
					require.Equal(b, lifecycle.HookFailed, result.Containers[0].Hook.Outcome)
				})
				requireSecretIsKept(t, output, func(ctx context.Context, b *testBed, script lifecycletest.Script) { // postStart
					b.addAppWithPostStart(handler, script)
					require.Error(b, b.PostStart(ctx, b.pod, containerNamed("app")))
				})
			})
		}
	}
}

// requireSecretIsKept lets failHook run a hook that fails with the output. There must be events, but neither they nor the log
// may have secretText. failHook starts its container with the script.
func requireSecretIsKept(t *testing.T, output string, failHook func(ctx context.Context, b *testBed, script lifecycletest.Script)) {
	t.Helper()
	var log bytes.Buffer
	inBubble(t, graceSeconds(30), func(b *testBed) {
		ctx := klog.NewContext(b.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log))))
		failHook(ctx, b, lifecycletest.Script{Exec: func(context.Context, []string) ([]byte, error) {
			return []byte(output), fmt.Errorf("command 'curl %s' exited with 1: %s", secretText, output) // as the kubelet's
		}})
		require.NotEmpty(b, b.events.All())
		for _, event := range b.events.All() {
			require.NotContains(b, event.Type+event.Reason+event.Message, secretText)
		}
	}, func(o *lifecycle.TerminatorOptions) {
		o.Hooks = lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{
			Commands: o.Runtime.(*lifecycletest.Runtime), HTTP: fixedResponse{output}, FailOnHTTPStatus: true, Events: o.Events,
		})
	})
	require.NotContains(t, log.String(), secretText)
}
