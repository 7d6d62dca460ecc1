package apistatus

import (
	"cmp"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/features"
	"github.com/kubegrace/kubegrace/internal/nilcheck"
	"github.com/kubegrace/kubegrace/shutdown"
)

// Reporter writes a node's conditions and its pods' final statuses to the API server. Make one with
// [New]: the methods of another one return an error. All methods may be called concurrently.
type Reporter struct {
	node           string
	ready          func() v1.NodeCondition
	api            requests
	publishesDrain bool // the feature DaemonSetGracefulNodeShutdown is on
}

var (
	_ shutdown.Reporter        = (*Reporter)(nil)
	_ shutdown.StatusFlusher   = (*Reporter)(nil)
	_ shutdown.ReadinessMarker = (*Reporter)(nil)
)

var errNotMade = errors.New("the Reporter was not made with New")

// New returns a Reporter. It makes no request. The error joins an error for each invalid option.
func New(opts Options) (*Reporter, error) {
	var errs []error
	if opts.Client == nil {
		errs = append(errs, errors.New("Options.Client is required"))
	}
	if err := nilcheck.Option("Options.Client", opts.Client); err != nil {
		errs = append(errs, err)
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
		api:            requests{client: opts.Client, timeout: cmp.Or(opts.RequestTimeout, defaultRequestTimeout)},
		publishesDrain: features.Enabled(opts.Gates, shutdown.DaemonSetGracefulNodeShutdown),
	}
	if r.ready == nil {
		r.ready = kubeletReady
	}
	return r, nil
}

// isMade reports whether New has made the Reporter.
func (r *Reporter) isMade() bool { return r != nil && r.ready != nil }
