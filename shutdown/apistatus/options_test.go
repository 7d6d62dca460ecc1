package apistatus_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
)

// notShuttingDown is the state of a node without a shutdown.
var notShuttingDown = shutdown.NodeState{}

// Options have three mistakes: no client, no node name, and a negative timeout. The error of New names all of them.
func TestNewJoinsAllOptionErrors(t *testing.T) {
	_, err := apistatus.New(apistatus.Options{RequestTimeout: -time.Second})
	require.EqualError(t, err, `Options.Client is required
Options.NodeName is required
Options.RequestTimeout must not be negative: -1s`)
}

// The client is a nil pointer, which would panic in the shutdown. New returns an error.
func TestNewRejectsANilPointer(t *testing.T) {
	_, err := apistatus.New(apistatus.Options{Client: (*fake.Clientset)(nil), NodeName: nodeName})
	require.EqualError(t, err, "Options.Client is a nil *fake.Clientset: leave it out or set a value")
}

// A Reporter that New has not made returns an error from each method, even if the method had nothing to do for the pod.
func TestMethodsOfTheZeroReporterFail(t *testing.T) {
	ended := &v1.Pod{Status: v1.PodStatus{Phase: v1.PodSucceeded}}
	for _, r := range []*apistatus.Reporter{nil, {}} {
		for name, err := range map[string]error{
			"PublishNode":      r.PublishNode(t.Context(), notShuttingDown),
			"FlushPod":         r.FlushPod(t.Context(), ended),
			"MarkNotReady":     r.MarkNotReady(t.Context(), ended),
			"RestoreReadiness": r.RestoreReadiness(t.Context(), ended),
		} {
			require.EqualError(t, err, "the Reporter was not made with New", name)
		}
	}
}

// The agent's config asks for protobuf, and the server offers HTTP/2. NewClient's client uses JSON and HTTP/1.1 instead, which
// the reporter needs, and keeps the user agent. NewClient does not modify the config.
func TestNewClientKeepsTheUserAgentAndUsesHTTP1(t *testing.T) {
	var agents, accepts, versions []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agents, accepts = append(agents, r.UserAgent()), append(accepts, r.Header.Get("Accept"))
		versions = append(versions, r.Proto)
		w.WriteHeader(http.StatusNotFound)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, UserAgent: "agent/1", TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}}
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	was := rest.CopyConfig(config)

	client, err := apistatus.NewClient(config)
	require.NoError(t, err)
	_, err = client.CoreV1().Nodes().Get(t.Context(), nodeName, metav1.GetOptions{})
	require.Error(t, err)
	require.Equal(t, []string{"agent/1"}, agents)
	require.Equal(t, []string{runtime.ContentTypeJSON}, accepts)
	require.Equal(t, []string{"HTTP/1.1"}, versions, "a cancelled request closes its connection")
	require.Equal(t, was, config, "the config is not modified")
}

// The agent's own client allows 5 requests a second. The reporter's client does not share that limit: it allows 1,500
// requests at once.
func TestNewClientHasItsOwnRateLimit(t *testing.T) {
	shared := flowcontrol.NewTokenBucketRateLimiter(5, 10)
	client, err := apistatus.NewClient(&rest.Config{Host: "127.0.0.1:1", QPS: 5, Burst: 10, RateLimiter: shared})
	require.NoError(t, err)
	limiter := client.CoreV1().RESTClient().GetRateLimiter()
	require.NotEqual(t, shared, limiter)
	require.InDelta(t, 1000, limiter.QPS(), 0)
	for range 3 * 500 {
		require.True(t, limiter.TryAccept(), "three requests for each of 500 pods")
	}
}

// A missing or invalid config is an error of NewClient, not of the first request in a shutdown.
func TestNewClientRejectsABadConfig(t *testing.T) {
	_, err := apistatus.NewClient(nil)
	require.EqualError(t, err, "rest.Config is required")
	_, err = apistatus.NewClient(&rest.Config{Host: "http://[::1"})
	require.ErrorContains(t, err, "failed to make a client: ")
}
