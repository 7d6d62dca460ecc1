package apistatus

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/featuregate"
)

// defaultRequestTimeout is shorter than the 2.5 s that a drain waits for the API server's next acknowledgement. A
// request that hangs on a dead connection therefore ends, and is repeated on a new connection, before the drain
// gives up on the API server.
const defaultRequestTimeout = 2 * time.Second

// Options configures a [Reporter].
type Options struct {
	// Client is the API server's client. Required. [NewClient] makes one that does not share the
	// agent's rate limit. The reporter uses CoreV1().RESTClient(), or the typed client if that is
	// nil, as in the fake clientset.
	Client kubernetes.Interface
	// NodeName is the name of the Node object. Required.
	NodeName string
	// Ready returns the node's Ready condition outside a shutdown. The reporter sets its type and
	// times. Nil means True with the kubelet's reason and message.
	Ready func() v1.NodeCondition
	// RequestTimeout bounds each request, in addition to the call's context. 0 means 2 s; a negative
	// value is an error.
	RequestTimeout time.Duration
	// Gates holds the feature gates, of which only [shutdown.DaemonSetGracefulNodeShutdown] is used.
	// Nil means the defaults: off.
	Gates featuregate.FeatureGate
}
