//go:build go1.25

package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// hookVectors is the content of testdata/hooks.yaml: the cases of the kubelet's tests of its handler
// runner. It is decoded strictly: a field of the file that is unknown here fails the test.
type hookVectors struct {
	Runner []runnerVector `json:"handler_runner"`
	HTTP   struct {
		Basis string
		Cases []httpVector
	} `json:"run_http_handler"`
}

// runnerVector is one hook and its expected outcome.
type runnerVector struct {
	Test  string // its name in Kubernetes
	Basis string // "upstream": the case comes from Kubernetes
	In    struct {
		Exec         []string
		RunnerErr    *string              `json:"runner_err"`
		RunnerOutput string               `json:"runner_output"`
		Handler      *v1.LifecycleHandler // a handler that the other fields cannot describe, such as an empty one
		Host, Path   string
		Port         *intstr.IntOrString
		Scheme       v1.URIScheme
		Headers      map[string]string
		DoerErr      string `json:"doer_err"`
		Sleep        *int64
		CtxTimeout   int64 `json:"ctx_timeout"`
		HTTPSToPlain bool  `json:"request_https_to_plain_http_server"`
	}
	Out runnerOutcome
}

// runnerOutcome is the expected outcome of a hook. Fields that are nil or empty are not compared, except Err.
type runnerOutcome struct {
	Err              any // a string: the text of the error; a bool: whether there is an error; nil: there is none
	Msg              *string
	RunnerCalledWith *struct {
		Cmd         []string
		ContainerID string
	} `json:"runner_called_with"`
	URL               *string
	HeaderPresent     map[string]string `json:"header_present"`
	AuthorizationSeen *string           `json:"authorization_seen_by_server"`
	Metric            map[string]float64
	EventContains     string `json:"event_contains"`
}

// httpVector is one httpGet hook and the expected request.
type httpVector struct {
	Name  string
	PodIP string
	Get   struct {
		Path, Host string
		Port       intstr.IntOrString
		Scheme     v1.URIScheme
		Headers    map[string]string
	}
	URL          string
	ExtraHeaders map[string]string `json:"extra_headers"`
}

// readHookVectors reads testdata/hooks.yaml.
func readHookVectors(t *testing.T) hookVectors {
	t.Helper()
	data, err := os.ReadFile("testdata/hooks.yaml")
	require.NoError(t, err)
	var vectors hookVectors
	require.NoError(t, yaml.UnmarshalStrict(data, &vectors))
	require.Len(t, vectors.Runner, 13, "no case of the file may get lost")
	require.Len(t, vectors.HTTP.Cases, 11)
	return vectors
}

// vectorPod is the pod of the kubelet's tests.
func vectorPod() (*v1.Pod, *v1.Container) {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "podFoo", Namespace: "nsFoo"},
		Spec: v1.PodSpec{Containers: []v1.Container{{
			Name:  "containerFoo",
			Ports: []v1.ContainerPort{{Name: "quux", ContainerPort: 8080}},
		}}},
	}
	return pod, &pod.Spec.Containers[0]
}

// listHeaders returns the headers of a hook, sorted by name.
func listHeaders(headers map[string]string) []v1.HTTPHeader {
	var list []v1.HTTPHeader
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		list = append(list, v1.HTTPHeader{Name: name, Value: headers[name]})
	}
	return list
}

// Each httpGet hook of testdata/hooks.yaml must send a request with the URL and the headers of the file. The cases are those
// of the kubelet's own tests. recordingDoer gets the request instead of a server.
func TestVectorsOfHTTPRequests(t *testing.T) {
	for _, v := range readHookVectors(t).HTTP.Cases {
		t.Run(v.Name, func(t *testing.T) {
			pod, container := vectorPod()
			doer := &recordingDoer{}
			runner := lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{
				HTTP:  doer,
				PodIP: func(context.Context, *v1.Pod) (string, error) { return v.PodIP, nil },
			})
			_, err := runner.Run(t.Context(), containerID, pod, container, httpHandler(v1.HTTPGetAction{
				Host: v.Get.Host, Port: v.Get.Port, Path: v.Get.Path, Scheme: v.Get.Scheme, HTTPHeaders: listHeaders(v.Get.Headers),
			}))
			require.NoError(t, err)
			require.Len(t, doer.requests, 1)
			want := http.Header{"Accept": {"*/*"}, "User-Agent": {"kube-lifecycle/1.37"}}
			for name, value := range v.ExtraHeaders {
				want.Set(name, value)
			}
			require.Equal(t, v.URL, doer.requests[0].URL.String())
			require.Equal(t, want, doer.requests[0].Header)
			require.Equal(t, want.Get("Host"), doer.requests[0].Host)
		})
	}
}

// Each hook of testdata/hooks.yaml must return the message and the error of the file, and have the effects that the file lists
// (runHookAndCompare). The cases are those of the kubelet's own tests.
func TestVectorsOfTheHandlerRunner(t *testing.T) {
	for _, v := range readHookVectors(t).Runner {
		t.Run(v.Test, func(t *testing.T) {
			if v.In.Sleep != nil { // in a bubble the sleep takes no real time
				synctest.Test(t, func(t *testing.T) { newVectorRun(t, v).runHookAndCompare(t) })
				return
			}
			newVectorRun(t, v).runHookAndCompare(t) // the HTTP server of some cases does not work in a bubble
		})
	}
}

// vectorRun is one vector with the fakes that its hook uses.
type vectorRun struct {
	vector   runnerVector
	handler  *v1.LifecycleHandler
	commands *recordingCommands
	doer     *recordingDoer // unused if there is a server
	events   *lifecycletest.Events
	seen     *http.Request // what the server has got
}

// newVectorRun prepares the fakes and the handler that a vector describes.
func newVectorRun(t *testing.T, v runnerVector) *vectorRun {
	t.Helper()
	r := &vectorRun{vector: v, commands: &recordingCommands{output: v.In.RunnerOutput}, events: &lifecycletest.Events{}}
	if v.In.RunnerErr != nil {
		r.commands.err = errors.New(*v.In.RunnerErr)
	}
	r.handler = r.handlerOf(t)
	return r
}

// handlerOf returns the handler that the vector describes.
func (r *vectorRun) handlerOf(t *testing.T) *v1.LifecycleHandler {
	t.Helper()
	switch in := r.vector.In; {
	case in.Handler != nil:
		return in.Handler
	case in.Exec != nil:
		return execHandler(in.Exec...)
	case in.Sleep != nil:
		return sleepHandler(*in.Sleep)
	case in.HTTPSToPlain, in.Port.StrVal == "<plain-http server>":
		return r.handlerOfServer(t)
	default:
		r.doer = &recordingDoer{}
		if in.DoerErr != "" {
			r.doer.err = errors.New(in.DoerErr)
		}
		return httpHandler(v1.HTTPGetAction{
			Host: in.Host, Port: *in.Port, Path: in.Path, Scheme: in.Scheme, HTTPHeaders: listHeaders(in.Headers),
		})
	}
}

// handlerOfServer returns an HTTPS handler for a server of plain HTTP.
func (r *vectorRun) handlerOfServer(t *testing.T) *v1.LifecycleHandler {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { r.seen = req }))
	t.Cleanup(server.Close)
	action := httpActionFor(t, server, v1.URISchemeHTTPS)
	action.Path, action.HTTPHeaders = r.vector.In.Path, listHeaders(r.vector.In.Headers)
	return httpHandler(action)
}

// runHookAndCompare runs the hook. The message, the error, the metrics, the command, the request and the
// events must be those of the vector, as far as the vector has them.
func (r *vectorRun) runHookAndCompare(t *testing.T) {
	ctx := t.Context()
	if timeout := r.vector.In.CtxTimeout; timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(timeout)*time.Second)
		defer cancel()
	}
	handle, count := countingMetrics(t)
	opts := lifecycle.HandlerRunnerOptions{Commands: r.commands, Events: r.events, Metrics: handle}
	if r.doer != nil {
		opts.HTTP = r.doer
	}
	pod, container := vectorPod()
	msg, err := lifecycle.NewHandlerRunner(opts).Run(ctx, containerID, pod, container, r.handler)

	want := r.vector.Out
	requireErr(t, want.Err, err)
	if want.Msg != nil {
		require.Equal(t, *want.Msg, msg)
	}
	for name, value := range want.Metric {
		require.InDelta(t, value, count(name), 0)
	}
	r.requireCommand(t)
	r.requireRequest(t)
	r.requireFallback(t)
}

// requireErr compares an error with a text, or with a bool that says whether there is one.
func requireErr(t *testing.T, want any, err error) {
	t.Helper()
	switch want := want.(type) {
	case string:
		require.EqualError(t, err, want)
	case bool:
		require.Equal(t, want, err != nil, fmt.Sprint(err))
	default:
		require.NoError(t, err)
	}
}

// requireCommand checks which command the hook has run, if the vector says it.
func (r *vectorRun) requireCommand(t *testing.T) {
	t.Helper()
	if want := r.vector.Out.RunnerCalledWith; want != nil {
		require.Equal(t, []commandCall{{want.ContainerID, want.Cmd, 0}}, r.commands.calls)
	}
}

// requireRequest checks which request the hook has sent, if the vector says it; an empty URL means none.
func (r *vectorRun) requireRequest(t *testing.T) {
	t.Helper()
	want := r.vector.Out
	if want.URL == nil {
		return
	}
	if *want.URL == "" {
		require.Empty(t, r.doer.requests)
		return
	}
	require.Len(t, r.doer.requests, 1)
	require.Equal(t, *want.URL, r.doer.requests[0].URL.String())
	for name, value := range want.HeaderPresent {
		require.Equal(t, value, r.doer.requests[0].Header.Get(name))
	}
}

// requireFallback checks what the fallback from HTTPS to HTTP has sent and recorded, if the vector says it.
func (r *vectorRun) requireFallback(t *testing.T) {
	t.Helper()
	want := r.vector.Out
	if want.AuthorizationSeen != nil {
		require.Equal(t, *want.AuthorizationSeen, r.seen.Header.Get("Authorization"))
	}
	if want.EventContains != "" {
		require.Len(t, r.events.All(), 1)
		require.True(t, strings.Contains(r.events.All()[0].Reason, want.EventContains))
	}
}
