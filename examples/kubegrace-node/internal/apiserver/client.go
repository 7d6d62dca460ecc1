package apiserver

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"k8s.io/component-base/featuregate"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
)

var (
	_ shutdown.Reporter        = (*Client)(nil)
	_ shutdown.StatusFlusher   = (*Client)(nil)
	_ shutdown.ReadinessMarker = (*Client)(nil)

	errNotLoaded = errors.New("its kubeconfig could not be used yet")
)

// Client reports one node and its pods. Make one with [New].
type Client struct {
	file, node string
	gates      featuregate.FeatureGate

	reporter atomic.Pointer[apistatus.Reporter] // nil before Load
}

// New returns a Client of the kubeconfig file, which need not exist yet.
func New(file, node string, gates featuregate.FeatureGate) *Client {
	return &Client{file: file, node: node, gates: gates}
}

// Load reads the kubeconfig, from which on reports are sent, and returns a client for all other
// requests.
func (c *Client) Load() (kubernetes.Interface, error) {
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

// Config reads the configuration of a kubeconfig's current context. Paths in it are relative to
// the file. Errors name the file.
func Config(file string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return config, nil
}

// PublishNode publishes the state of the node.
func (c *Client) PublishNode(ctx context.Context, state shutdown.NodeState) error {
	return c.with(func(r *apistatus.Reporter) error { return r.PublishNode(ctx, state) })
}

// FlushPod sends the final status of a pod.
func (c *Client) FlushPod(ctx context.Context, pod *v1.Pod) error {
	return c.with(func(r *apistatus.Reporter) error { return r.FlushPod(ctx, pod) })
}

// MarkNotReady takes a pod out of its services.
func (c *Client) MarkNotReady(ctx context.Context, pod *v1.Pod) error {
	return c.with(func(r *apistatus.Reporter) error { return r.MarkNotReady(ctx, pod) })
}

// RestoreReadiness undoes MarkNotReady.
func (c *Client) RestoreReadiness(ctx context.Context, pod *v1.Pod) error {
	return c.with(func(r *apistatus.Reporter) error { return r.RestoreReadiness(ctx, pod) })
}

func (c *Client) with(call func(*apistatus.Reporter) error) error {
	reporter := c.reporter.Load()
	if reporter == nil {
		return fmt.Errorf("%s: %w", c.file, errNotLoaded)
	}
	return call(reporter)
}
