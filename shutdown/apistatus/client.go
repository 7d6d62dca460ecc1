package apistatus

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// clientQPS is the rate limit of a client of [NewClient], in requests per second.
	// client-go's default of 5 would make 500 final statuses take 100 s, and the
	// kubelet's 50 would make them take 10 s.
	clientQPS = 1000
	// clientBurst is how many requests it may make at once: three (readiness, status,
	// delete) for each of 500 pods.
	clientBurst = 1500
)

// NewClient returns a client for a [Reporter], made from an agent's config. The config is
// copied; nil is an error.
//
// The client has its own rate limit (1,000 requests a second, 1,500 at once) and its own
// connections, so that the reporter and the rest of the agent do not wait for each other.
// Credentials, the user agent and a Transport of the config are kept.
//
// The client speaks HTTP/1.1, unless the config sets NextProtos. With HTTP/1.1 a
// cancelled request closes its connection and the next request dials a new one. With
// HTTP/2 all requests would share one connection, and a connection that hangs would block
// them until the shutdown is over. Bodies are JSON, as strategic merge patches are in any
// case.
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
