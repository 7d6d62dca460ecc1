package apistatus

import (
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubegrace/kubegrace/shutdown"
)

// defaultRequestTimeout is longer than a server that can be worked with takes for an
// answer, and shorter than the 2.5 s that a drain waits for the next acknowledgement:
// what hangs on a dead connection is asked again on a new one before the drain takes
// the server for dead.
const defaultRequestTimeout = 2 * time.Second

// Options say what a [Reporter] reports, and to whom.
type Options struct {
	// Client speaks to the API server. Required. [NewClient] makes one whose requests
	// are not held back behind those of the rest of the agent. Requests are made with
	// its CoreV1().RESTClient() where it has one.
	Client kubernetes.Interface
	// NodeName is the name of the node's object. Required.
	NodeName string
	// Ready gives the node's Ready condition as it is without a shutdown; its type is
	// set, its times are not read. Nil: True, with the kubelet's reason and message.
	Ready func() v1.NodeCondition
	// RequestTimeout bounds each request, besides the context of the call. 0: 2 s,
	// which is less than a drain waits for the answer of a server that may be dead.
	RequestTimeout time.Duration
}

// Reporter writes the state of a node and the final statuses of its pods. All its
// methods may be called concurrently.
type Reporter struct {
	opts Options
	api  requests
}

var (
	_ shutdown.Reporter          = (*Reporter)(nil)
	_ shutdown.StatusFlusher     = (*Reporter)(nil)
	_ shutdown.ReadinessMarker   = (*Reporter)(nil)
	_ shutdown.ReadinessRestorer = (*Reporter)(nil)
)

// New makes a Reporter. The error joins all that is wrong with the options.
func New(opts Options) (*Reporter, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	return &Reporter{opts: opts, api: requests{client: opts.Client, timeout: opts.RequestTimeout}}, nil
}

// validate names every field that is wrong, and its value.
func (o Options) validate() error {
	var errs []error
	if o.Client == nil {
		errs = append(errs, errors.New("Options.Client is required"))
	}
	if o.NodeName == "" {
		errs = append(errs, errors.New("Options.NodeName is required"))
	}
	if o.RequestTimeout < 0 {
		errs = append(errs, fmt.Errorf("Options.RequestTimeout must not be negative: %v", o.RequestTimeout))
	}
	return errors.Join(errs...)
}

// withDefaults fills in what was left out.
func (o Options) withDefaults() Options {
	if o.Ready == nil {
		o.Ready = kubeletReady
	}
	if o.RequestTimeout == 0 {
		o.RequestTimeout = defaultRequestTimeout
	}
	return o
}
