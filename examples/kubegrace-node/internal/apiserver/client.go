package apiserver

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
)

var (
	_ shutdown.Reporter        = (*Client)(nil)
	_ shutdown.StatusFlusher   = (*Client)(nil)
	_ shutdown.ReadinessMarker = (*Client)(nil)

	// errNotLoaded is the error of every report before LoadKubeconfig has succeeded.
	errNotLoaded = errors.New("its kubeconfig could not be used yet")
)

// objectNode and objectPod are the values of the label "object" in [Client.Failures].
const objectNode, objectPod = "node", "pod"

// Client reports one node and its pods. Make one with [New].
type Client struct {
	file, node string
	gates      featuregate.FeatureGate
	failures   *prometheus.CounterVec

	reporter atomic.Pointer[apistatus.Reporter] // nil before LoadKubeconfig
}

// New returns a Client that uses the kubeconfig at file, which need not exist yet. node is the name of the
// node's object.
func New(file, node string, gates featuregate.FeatureGate) *Client {
	c := &Client{file: file, node: node, gates: gates, failures: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kubegrace_node_api_updates_failed_total",
		Help: "Updates of the node's conditions and of pods' statuses that the API server has not accepted. Each is tried again.",
	}, []string{"object"})}
	for _, object := range []string{objectNode, objectPod} {
		c.failures.WithLabelValues(object) // exists with 0 from the start, so that increase() in Prometheus counts the first failure
	}
	return c
}

// Failures returns the counter of failed updates, by the kind of object. An update whose context was
// cancelled, because a newer one replaces it, does not count.
func (c *Client) Failures() prometheus.Collector { return c.failures }

// LoadKubeconfig reads the kubeconfig. From then on reports are sent to its API server. LoadKubeconfig returns a client for
// all other requests, so that these cannot delay the reports.
func (c *Client) LoadKubeconfig() (kubernetes.Interface, error) {
	config, err := Config(c.file)
	if err != nil {
		return nil, err
	}
	urgent, err := apistatus.NewClient(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.file, err)
	}
	reporter, err := apistatus.New(apistatus.Options{Client: urgent, NodeName: c.node, Gates: c.gates})
	if err != nil {
		return nil, err
	}
	ordinary, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.file, err)
	}
	c.reporter.Store(reporter)
	return ordinary, nil
}

// Config reads a kubeconfig, and returns the client configuration of its current context. Relative paths in
// the kubeconfig start at its folder. Errors name the file.
func Config(file string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return config, nil
}

// PublishNode writes the state of the node into the conditions of its object.
func (c *Client) PublishNode(ctx context.Context, state shutdown.NodeState) error {
	return c.update(ctx, objectNode, func(r *apistatus.Reporter) error { return r.PublishNode(ctx, state) })
}

// FlushPod sends the final status of a pod, and returns when the API server has it.
func (c *Client) FlushPod(ctx context.Context, pod *v1.Pod) error {
	return c.update(ctx, objectPod, func(r *apistatus.Reporter) error { return r.FlushPod(ctx, pod) })
}

// MarkNotReady makes a pod not ready, so that its services no longer send it requests.
func (c *Client) MarkNotReady(ctx context.Context, pod *v1.Pod) error {
	return c.update(ctx, objectPod, func(r *apistatus.Reporter) error { return r.MarkNotReady(ctx, pod) })
}

// RestoreReadiness undoes MarkNotReady.
func (c *Client) RestoreReadiness(ctx context.Context, pod *v1.Pod) error {
	return c.update(ctx, objectPod, func(r *apistatus.Reporter) error { return r.RestoreReadiness(ctx, pod) })
}

// update makes one update with the reporter, and counts a failure by the kind of object. If the API server does not accept
// the credentials, update loads the kubeconfig again, which may have new ones, and makes the update once more. Before
// LoadKubeconfig has succeeded, update fails at once.
func (c *Client) update(ctx context.Context, object string, call func(*apistatus.Reporter) error) error {
	err := fmt.Errorf("%s: %w", c.file, errNotLoaded)
	if reporter := c.reporter.Load(); reporter != nil {
		err = call(reporter)
	}
	if apierrors.IsUnauthorized(err) {
		if _, loadErr := c.LoadKubeconfig(); loadErr != nil {
			err = errors.Join(err, loadErr)
		} else {
			err = call(c.reporter.Load())
		}
	}
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		c.failures.WithLabelValues(object).Inc()
	}
	return err
}
