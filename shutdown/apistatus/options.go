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

// defaultRequestTimeout is longer than a healthy server takes for an answer, and shorter
// than the 2.5 s for which a drain waits for the next acknowledgement. A request that
// hangs on a dead connection is therefore repeated on a new one before the drain gives up
// on the server.
const defaultRequestTimeout = 2 * time.Second

// Options configure a [Reporter].
type Options struct {
	// Client is the client of the API server. Required. [NewClient] makes one whose
	// requests do not wait for those of the rest of the agent. Requests are made with its
	// CoreV1().RESTClient(), or with the typed client if that is nil, as in the fake
	// clientset.
	Client kubernetes.Interface
	// NodeName is the name of the Node object. Required.
	NodeName string
	// Ready returns the Ready condition that the node has without a shutdown. Its type
	// and its times are set by the reporter. Nil means status True with the kubelet's
	// reason and message.
	Ready func() v1.NodeCondition
	// RequestTimeout bounds each request, in addition to the context of the call. 0 means
	// 2 s, which is less than a drain waits for an acknowledgement; a negative value is
	// an error.
	RequestTimeout time.Duration
	// Gates are the feature gates. Nil means the default of every gate; that of
	// [shutdown.DaemonSetGracefulNodeShutdown], the only one that is asked for here, is off.
	Gates featuregate.FeatureGate
}

// Reporter reports the state of a node and the final statuses of its pods to the API
// server. Make one with [New]. All methods may be called concurrently.
type Reporter struct {
	node  string
	ready func() v1.NodeCondition
	api   requests
	// publishesDrain is the feature DaemonSetGracefulNodeShutdown.
	publishesDrain bool
}

var (
	_ shutdown.Reporter        = (*Reporter)(nil)
	_ shutdown.StatusFlusher   = (*Reporter)(nil)
	_ shutdown.ReadinessMarker = (*Reporter)(nil)
)

// New returns a Reporter. It makes no request. The error joins all faults of the options.
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
