package apistatus

import (
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubegrace/kubegrace/shutdown"
)

const (
	// DefaultWorkers is how many pods are written at the same time: as many
	// connections to one host as client-go keeps open between requests.
	DefaultWorkers = 25
	// DefaultAttemptTimeout is what the first attempt of a write has at most.
	DefaultAttemptTimeout = time.Second
)

// Options say what a [Reporter] reports, and to whom.
type Options struct {
	// Client speaks to the API server. Required. [NewClient] makes one whose requests
	// are not held back behind those of the rest of the agent.
	Client kubernetes.Interface
	// NodeName is the name of the node's object. Required.
	NodeName string
	// Ready gives the node's Ready condition as it is without a shutdown; its type is
	// set, its times are not read. Nil: True, with the kubelet's reason and message.
	Ready func() v1.NodeCondition
	// Workers is how many pods are written at the same time. 0: [DefaultWorkers].
	Workers int
	// AttemptTimeout bounds the first attempt to write a pod or a node, as does a
	// quarter of the time that its context leaves, and each further one has twice as
	// much as the one before. 0: [DefaultAttemptTimeout].
	AttemptTimeout time.Duration
}

// Reporter writes the state of a node and the final statuses of its pods. All its
// methods may be called concurrently.
type Reporter struct {
	opts Options
}

var (
	_ shutdown.Reporter        = (*Reporter)(nil)
	_ shutdown.ReadinessMarker = (*Reporter)(nil)
)

// New makes a Reporter. The error joins all that is wrong with the options.
func New(opts Options) (*Reporter, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	return &Reporter{opts: opts.withDefaults()}, nil
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
	if o.Workers < 0 {
		errs = append(errs, fmt.Errorf("Options.Workers must not be negative: %d", o.Workers))
	}
	if o.AttemptTimeout < 0 {
		errs = append(errs, fmt.Errorf("Options.AttemptTimeout must not be negative: %v", o.AttemptTimeout))
	}
	return errors.Join(errs...)
}

// withDefaults fills in what was left out.
func (o Options) withDefaults() Options {
	if o.Ready == nil {
		o.Ready = kubeletReady
	}
	if o.Workers == 0 {
		o.Workers = DefaultWorkers
	}
	if o.AttemptTimeout == 0 {
		o.AttemptTimeout = DefaultAttemptTimeout
	}
	return o
}
