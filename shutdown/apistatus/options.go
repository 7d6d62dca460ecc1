package apistatus

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"k8s.io/component-base/featuregate"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubegrace/kubegrace/internal/features"
	"github.com/kubegrace/kubegrace/shutdown"
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

// Reporter writes a node's conditions and its pods' final statuses to the API server. Make one with
// [New]. All methods may be called concurrently.
type Reporter struct {
	node           string
	ready          func() v1.NodeCondition
	api            requests
	publishesDrain bool // the feature DaemonSetGracefulNodeShutdown
}

var (
	_ shutdown.Reporter        = (*Reporter)(nil)
	_ shutdown.StatusFlusher   = (*Reporter)(nil)
	_ shutdown.ReadinessMarker = (*Reporter)(nil)
)

// New returns a Reporter. It makes no request. The error joins an error for each invalid option.
func New(opts Options) (*Reporter, error) {
	var errs []error
	if opts.Client == nil {
		errs = append(errs, errors.New("Options.Client is required"))
	}
	if opts.NodeName == "" {
		errs = append(errs, errors.New("Options.NodeName is required"))
	}
	if opts.RequestTimeout < 0 {
		errs = append(errs, fmt.Errorf("Options.RequestTimeout must not be negative: %v", opts.RequestTimeout))
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	r := &Reporter{
		node: opts.NodeName, ready: opts.Ready,
		api:            requests{opts.Client, cmp.Or(opts.RequestTimeout, defaultRequestTimeout)},
		publishesDrain: features.Enabled(opts.Gates, shutdown.DaemonSetGracefulNodeShutdown),
	}
	if r.ready == nil {
		r.ready = kubeletReady
	}
	return r, nil
}
