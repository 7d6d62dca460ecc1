package apistatus

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// clientQPS is how many requests a client of [NewClient] makes in a second, on
	// the whole. The default of client-go is 5, the kubelet's 50: 500 final statuses
	// would take 100 s with the one, 10 s with the other.
	clientQPS = 1000
	// clientBurst is how many it makes at once: the three (readiness, status, delete)
	// of 500 pods.
	clientBurst = 1500
)

// NewClient makes a client for a [Reporter] out of an agent's config, which is
// copied. Its budget of requests (1,000 a second, 1,500 at once) and its connections
// are its own, so that neither waits for the other's; who it is, the user agent
// included, and a Transport of the config's own are kept.
//
// It speaks HTTP/1.1, unless the config names protocols itself: a request that is
// given up then takes its connection with it, and the next one dials. All requests
// over HTTP/2 would share one connection, and with one that is stuck the time that
// is left of a shutdown. Bodies are JSON, which a strategic merge patch is anyway.
func NewClient(config *rest.Config) (kubernetes.Interface, error) {
	if config == nil {
		return nil, errors.New("rest.Config is required")
	}
	own := rest.CopyConfig(config)
	own.QPS, own.Burst, own.RateLimiter = clientQPS, clientBurst, nil
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	if len(own.NextProtos) == 0 {
		own.NextProtos = []string{"http/1.1"}
	}
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("failed to make a client: %w", err)
	}
	return client, nil
}
