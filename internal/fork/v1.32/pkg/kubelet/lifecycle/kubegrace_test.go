package lifecycle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/version"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/kubegrace"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	"k8s.io/kubernetes/pkg/vectors"
)

// hookVectors are the cases of the kubelet's handlers_test.go, as lifecycle/testdata/hooks.yaml has them.
type hookVectors struct {
	Runner []runnerVector `json:"handler_runner"`
	HTTP   struct {
		Cases []struct {
			Name, PodIP  string
			Get          action
			URL          string
			ExtraHeaders map[string]string `json:"extra_headers"`
		}
	} `json:"run_http_handler"`
}

// action is an httpGet hook.
type action struct {
	Host, Path string
	Port       intstr.IntOrString
	Scheme     v1.URIScheme
	Headers    map[string]string
}

// handler returns the hook as it is in a pod's spec.
func (a action) handler() *v1.LifecycleHandler {
	get := &v1.HTTPGetAction{Host: a.Host, Path: a.Path, Port: a.Port, Scheme: a.Scheme}
	for _, name := range slices.Sorted(maps.Keys(a.Headers)) {
		get.HTTPHeaders = append(get.HTTPHeaders, v1.HTTPHeader{Name: name, Value: a.Headers[name]})
	}
	return &v1.LifecycleHandler{HTTPGet: get}
}

// runnerVector is a case of a hook runner: a hook and its expected outcome.
type runnerVector struct {
	Test string
	In   struct {
		action

		Exec         []string
		RunnerErr    string `json:"runner_err"`
		RunnerOutput string `json:"runner_output"`
		DoerErr      string `json:"doer_err"`
		Sleep        *int64
		CtxTimeout   int64 `json:"ctx_timeout"`
		HTTPSToPlain bool  `json:"request_https_to_plain_http_server"`
	}
	Out runnerOutcome
}

// runnerOutcome is the expected outcome of a hook.
type runnerOutcome struct {
	Err              any // the text of the error, or a bool: whether there is one
	Msg              *string
	RunnerCalledWith *struct {
		Cmd         []string
		ContainerID string
	} `json:"runner_called_with"`
	URL               string
	HeaderPresent     map[string]string `json:"header_present"`
	AuthorizationSeen *string           `json:"authorization_seen_by_server"`
	EventContains     string            `json:"event_contains"`
	fallsBack         bool              // the file has "true" as the outcome: the HTTPS hook is repeated over HTTP
}

// UnmarshalJSON sets fallsBack if the data is true, and otherwise the other fields.
func (o *runnerOutcome) UnmarshalJSON(data []byte) error {
	if o.fallsBack = bytes.Equal(data, []byte("true")); o.fallsBack {
		return nil
	}
	type fields runnerOutcome
	return json.Unmarshal(data, (*fields)(o))
}

// hookFakes is the fake runtime and HTTP client of a hook.
type hookFakes struct {
	ips      []string        // of the pod
	err      error           // of the command or the request
	output   string          // of the command
	failing  string          // the method of the runtime that fails
	ran      []string        // the container and the command of each exec hook
	timeouts []time.Duration // of the commands
	requests []*http.Request
}

// RunInContainer records the command of an exec hook.
func (f *hookFakes) RunInContainer(_ context.Context, id kubecontainer.ContainerID, cmd []string, timeout time.Duration) ([]byte, error) {
	f.timeouts = append(f.timeouts, timeout)
	f.ran = append(f.ran, strings.Join(append([]string{id.String()}, cmd...), " "))
	return []byte(f.output), f.err
}

// Do records the request of an httpGet hook.
func (f *hookFakes) Do(req *http.Request) (*http.Response, error) {
	f.requests = append(f.requests, req)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}, f.err
}

// vectorPod returns the pod of the kubelet's tests, and its container.
func vectorPod() (*v1.Pod, *v1.Container) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "podFoo", Namespace: "nsFoo"}}
	pod.Spec.Containers = []v1.Container{{Name: "containerFoo", Ports: []v1.ContainerPort{{Name: "quux", ContainerPort: 8080}}}}
	return pod, &pod.Spec.Containers[0]
}

// The kubelet's cases for the request of an httpGet hook. The host of the request is that of the hook, or else the
// pod's IP. The port of the hook may be a name. The request has the URL and the headers that the kubelet's request
// would have.
func TestHTTPHookVectors(t *testing.T) {
	for _, c := range vectors.Read[hookVectors](t, "lifecycle/testdata/hooks.yaml").HTTP.Cases {
		t.Run(c.Name, func(t *testing.T) {
			fakes := &hookFakes{ips: []string{c.PodIP}}
			_, err := runHook(t.Context(), t, runnerParts{http: fakes, pods: fakes}, c.Get.handler())
			require.NoError(t, err)
			require.Equal(t, c.URL, fakes.requests[0].URL.String())
			for name, value := range c.ExtraHeaders {
				require.Equal(t, value, fakes.requests[0].Header.Get(name))
			}
		})
	}
}

// The kubelet's cases for exec, httpGet and sleep hooks. The error, the message, the command or the request, and the
// event of each hook are the kubelet's. Only sleep hooks run in a synctest bubble, because an httpGet hook may need a
// real server.
func TestHandlerRunnerVectors(t *testing.T) {
	cases := vectors.Read[hookVectors](t, "lifecycle/testdata/hooks.yaml").Runner
	require.Len(t, cases, 13)
	for _, v := range cases {
		t.Run(v.Test, func(t *testing.T) {
			if v.In.Sleep != nil {
				synctest.Test(t, v.run)
				return
			}
			v.run(t)
		})
	}
}

// run runs the hook of the case with fakes, and requires its outcome. A case expects only what it sets in Out; without
// Out.Err it expects no error.
func (v runnerVector) run(t *testing.T) {
	fakes := &hookFakes{ips: []string{"192.0.2.1"}, output: v.In.RunnerOutput}
	if text := v.In.RunnerErr + v.In.DoerErr; text != "" {
		fakes.err = errors.New(text)
	}
	var doer kubetypes.HTTPDoer = fakes
	if v.In.HTTPSToPlain || v.In.Port.StrVal == "<plain-http server>" {
		doer = nil // the runner uses kubegrace's client
		v.In.action = fakes.serveHTTP(t, v.In.action)
	}
	ctx := t.Context()
	if v.In.CtxTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(v.In.CtxTimeout)*time.Second)
		defer cancel()
	}
	events := record.NewFakeRecorder(1)
	msg, err := runHook(ctx, t, runnerParts{http: doer, commands: fakes, pods: fakes, events: events}, v.handler())

	switch want := v.Out.Err.(type) {
	case string:
		require.EqualError(t, err, want)
	case bool:
		require.Equal(t, want, err != nil)
	default:
		require.NoError(t, err)
	}
	if v.Out.Msg != nil {
		require.Equal(t, *v.Out.Msg, msg)
	}
	if want := v.Out.RunnerCalledWith; want != nil {
		require.Equal(t, []string{want.ContainerID + " " + strings.Join(want.Cmd, " ")}, fakes.ran)
	}
	if v.Out.URL != "" {
		require.Equal(t, v.Out.URL, fakes.requests[0].URL.String())
	}
	for name, value := range v.Out.HeaderPresent {
		require.Equal(t, value, fakes.requests[0].Header.Get(name))
	}
	if v.Out.fallsBack || v.Out.AuthorizationSeen != nil {
		require.Len(t, fakes.requests, 1, "the request was repeated over HTTP")
		require.Empty(t, fakes.requests[0].Header.Get("Authorization"))
	}
	if v.Out.EventContains != "" {
		require.Contains(t, vectors.Events(events)[0], v.Out.EventContains)
	}
}

// handler returns the hook as it is in a pod's spec.
func (v runnerVector) handler() *v1.LifecycleHandler {
	switch {
	case v.In.Exec != nil:
		return &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: v.In.Exec}}
	case v.In.Sleep != nil:
		return &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: *v.In.Sleep}}
	case v.Test == "TestRunHandlerNil":
		return &v1.LifecycleHandler{}
	default:
		return v.In.handler()
	}
}

// serveHTTP starts a server that speaks only HTTP, and returns the hook changed to an HTTPS request to this server.
func (f *hookFakes) serveHTTP(t *testing.T, hook action) action {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { f.requests = append(f.requests, req) }))
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	hook.Host, hook.Port, hook.Scheme = address.Hostname(), intstr.FromString(address.Port()), v1.URISchemeHTTPS
	return hook
}

// runnerParts are the arguments of NewHandlerRunner; nil: the hook of the test does not need it.
type runnerParts struct {
	http     kubetypes.HTTPDoer
	commands kubecontainer.CommandRunner
	pods     podStatusProvider
	events   record.EventRecorder
}

// newRunner returns kubegrace's runner: it calls NewHandlerRunner with the feature gate on.
func newRunner(t *testing.T, parts runnerParts) kubecontainer.HandlerRunner {
	t.Helper()
	vectors.SetGate(t, kubegrace.Hooks, true)
	return NewHandlerRunner(parts.http, parts.commands, parts.pods, parts.events)
}

// runHook runs a hook of the container of vectorPod with kubegrace's runner.
func runHook(ctx context.Context, t *testing.T, parts runnerParts, handler *v1.LifecycleHandler) (string, error) {
	t.Helper()
	pod, container := vectorPod()
	return newRunner(t, parts).Run(ctx, kubecontainer.ContainerID{Type: "test", ID: "abc1234"}, pod, container, handler)
}

// NewHandlerRunner returns the kubelet's runner if the feature gate is off, and kubegrace's if it is on.
func TestTheGateSelectsTheHookRunner(t *testing.T) {
	require.IsType(t, &handlerRunner{}, NewHandlerRunner(nil, nil, nil, nil)) // it runs no hook here, and so needs nothing
	require.IsType(t, kubegraceRunner(nil), newRunner(t, runnerParts{}))
}

// The User-Agent of an httpGet hook is kube-lifecycle/MAJOR.MINOR, with the version of the fork, which the linker sets when a
// kubelet is built.
func TestTheUserAgentHasTheVersionOfTheFork(t *testing.T) {
	fakes := &hookFakes{ips: []string{"192.0.2.1"}}
	_, err := runGetWithoutHost(t, fakes)
	require.NoError(t, err)
	require.Equal(t, "kube-lifecycle/"+version.Get().Major+"."+version.Get().Minor, fakes.requests[0].UserAgent())
}

// runGetWithoutHost runs an httpGet hook that has no host, so that its request goes to the pod's IP.
func runGetWithoutHost(t *testing.T, fakes *hookFakes) (string, error) {
	t.Helper()
	return runHook(t.Context(), t, runnerParts{http: fakes, pods: fakes}, action{Path: "stop", Port: intstr.FromInt32(80)}.handler())
}

// An httpGet hook has no host, and its pod has no IP. The hook fails with the kubelet's error and message, which have the
// pod's empty status.
func TestAnHTTPHookWithoutAPodIPFails(t *testing.T) {
	want := fmt.Sprintf("failed to find networking container: %v", &kubecontainer.PodStatus{})
	msg, err := runGetWithoutHost(t, &hookFakes{})
	require.EqualError(t, err, want)
	require.Equal(t, `HTTP lifecycle hook (stop) for Container "containerFoo" in Pod "podFoo_nsFoo()" failed - error: `+want, msg)
}

// An httpGet hook has no host, and its pod's IP is the empty string. The hook fails. The kubelet would send the request
// to the node itself.
func TestAnHTTPHookWithAnEmptyPodIPFails(t *testing.T) {
	fakes := &hookFakes{ips: []string{""}}
	_, err := runGetWithoutHost(t, fakes)
	require.EqualError(t, err, "failed to find networking container: podFoo_nsFoo()")
	require.Empty(t, fakes.requests)
}

// An httpGet hook without a host needs the pod's IP from the runtime. Each of the runtime's methods that read it fails once
// (statusErrors lists them). The hook's error has the text that the kubelet's would have.
func TestAnHTTPHookReturnsTheErrorsOfTheRuntime(t *testing.T) {
	for method, want := range statusErrors() {
		_, err := runGetWithoutHost(t, &hookFakes{failing: method})
		require.EqualError(t, err, want, method)
	}
}

// An httpGet hook sends its request through the HTTP client that the kubelet has passed to NewHandlerRunner. The request
// does not ask to close the connection.
func TestHTTPHooksUseTheKubeletsClient(t *testing.T) {
	fakes := &hookFakes{ips: []string{"192.0.2.1"}}
	_, err := runGetWithoutHost(t, fakes)
	require.NoError(t, err)
	require.Len(t, fakes.requests, 1)
	require.False(t, fakes.requests[0].Close, "the connection may be used again")
}

// An exec hook gets a context that ends in 10 s. So the runtime is told to run its command with a timeout of 10 s.
func TestAnExecHookHasTheRemainingTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fakes := &hookFakes{}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := runHook(ctx, t, runnerParts{commands: fakes}, &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"stop"}}})
		require.NoError(t, err)
		require.Equal(t, []time.Duration{10 * time.Second}, fakes.timeouts)
	})
}

// A sleep hook of 1 s is interrupted by the end of its context. 50 ms before its end this is no failure, because up to
// 100 ms are forgiven. 150 ms before its end it is a failure.
func TestASleepThatIsCutAtItsEndSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sleepCutAfter := func(d time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			_, err := runHook(ctx, t, runnerParts{}, &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 1}})
			return err
		}
		require.NoError(t, sleepCutAfter(950*time.Millisecond))
		require.Error(t, sleepCutAfter(850*time.Millisecond))
	})
}
