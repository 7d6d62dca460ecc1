package apiserver

import (
	"context"
	"errors"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
)

var (
	_ shutdown.Reporter          = (*Client)(nil)
	_ shutdown.StatusFlusher     = (*Client)(nil)
	_ shutdown.ReadinessMarker   = (*Client)(nil)
	_ shutdown.ReadinessRestorer = (*Client)(nil)

	errNotLoaded   = errors.New("its kubeconfig could not be used yet")
	errNotAnswered = errors.New("it has not answered")
)

// Client reports one node and its pods. Make one with [New].
type Client struct {
	file, node string

	mu       sync.Mutex // guards what follows; never held during a request
	reporter *apistatus.Reporter
	failure  error // why the API server does not know that the node shuts down
}

// New returns a Client of the kubeconfig file, which need not exist yet.
func New(file, node string) *Client { return &Client{file: file, node: node} }

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
	reporter, err := apistatus.New(apistatus.Options{Client: urgent, NodeName: c.node})
	if err != nil {
		return nil, err
	}
	ordinary, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.file, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reporter = reporter
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

// loaded returns the reporter, or an error before Load.
func (c *Client) loaded() (*apistatus.Reporter, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reporter == nil {
		return nil, fmt.Errorf("%s: %w", c.file, errNotLoaded)
	}
	return c.reporter, nil
}

// PublishNode publishes the state of the node, and keeps the result for PublishError.
func (c *Client) PublishNode(ctx context.Context, state shutdown.NodeState) error {
	c.mu.Lock()
	if !state.ShuttingDown {
		c.failure = nil
	} else if c.failure == nil { // an older error says more
		c.failure = errNotAnswered
	}
	c.mu.Unlock()
	reporter, err := c.loaded()
	if err == nil {
		err = reporter.PublishNode(ctx, state)
	}
	if state.ShuttingDown {
		c.mu.Lock()
		c.failure = err
		c.mu.Unlock()
	}
	return err
}

// PublishError returns why the API server does not know that the node is shutting down. It
// is nil if the server knows, and if there is no shutdown.
func (c *Client) PublishError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
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
	reporter, err := c.loaded()
	if err != nil {
		return err
	}
	return call(reporter)
}
