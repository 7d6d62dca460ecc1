//go:build unix

package main

import (
	"context"
	"errors"
	"io"

	dto "github.com/prometheus/client_model/go"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
)

// errNotServed is the error of all methods of withoutStreams.
var errNotServed = errors.New("not served by this node")

// withoutStreams adds the other methods that nodeutil requires of a provider: logs, exec, attach, port-forward,
// stats and metrics. They are called only if NewNode gets an HTTP handler, which this program does not pass.
type withoutStreams struct{ *virtualkubelet.Provider }

// GetContainerLogs and the other methods fail: this node does not serve them.
func (withoutStreams) GetContainerLogs(context.Context, string, string, string, api.ContainerLogOpts) (io.ReadCloser, error) {
	return nil, errNotServed
}

func (withoutStreams) RunInContainer(context.Context, string, string, string, []string, api.AttachIO) error {
	return errNotServed
}

func (withoutStreams) AttachToContainer(context.Context, string, string, string, api.AttachIO) error {
	return errNotServed
}

func (withoutStreams) PortForward(context.Context, string, string, int32, io.ReadWriteCloser) error {
	return errNotServed
}

func (withoutStreams) GetStatsSummary(context.Context) (*stats.Summary, error) {
	return nil, errNotServed
}

func (withoutStreams) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) {
	return nil, errNotServed
}
