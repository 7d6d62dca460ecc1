package apistatus

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// clientQPS is the rate limit of [NewClient], in requests per second. 500 final statuses take
	// 100 s with client-go's default of 5, and 10 s with the kubelet's 50.
	clientQPS = 1000
	// clientBurst allows three requests (readiness, status, delete) at once for each of 500 pods.
	clientBurst = 1500
)

// NewClient returns a client for a [Reporter]. It copies config; nil is an error.
//
// The client has its own rate limit (1,000 requests a second, bursts of 1,500) and its own
// connections, so that the reporter and the rest of the agent do not wait for each other. It keeps
// the credentials, user agent and Transport of config, and sends JSON.
//
// The client uses HTTP/1.1 unless config sets NextProtos: a cancelled request then closes its
// connection, and the next request dials a new one. With HTTP/2 one hanging connection would block
// all requests.
func NewClient(config *rest.Config) (kubernetes.Interface, error) {
	if config == nil {
		return nil, errors.New("rest.Config is required")
	}
	copied := rest.CopyConfig(config)
	copied.QPS, copied.Burst, copied.RateLimiter = clientQPS, clientBurst, nil
	copied.ContentType, copied.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	if len(copied.NextProtos) == 0 {
		copied.NextProtos = []string{"http/1.1"}
	}
	client, err := kubernetes.NewForConfig(copied)
	if err != nil {
		return nil, fmt.Errorf("failed to make a client: %w", err)
	}
	return client, nil
}
