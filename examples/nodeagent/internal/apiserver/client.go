package apiserver

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
)

// nodeTimeout bounds NodeExists, for which the start of the agent waits.
const nodeTimeout = 2 * time.Second

var (
	_ shutdown.Reporter        = (*Client)(nil)
	_ shutdown.ReadinessMarker = (*Client)(nil)
	_ lifecycle.EventRecorder  = (*Client)(nil)
)

// Options say which clients a [Client] uses, and for which node and pods. All fields are
// required.
type Options struct {
	// Urgent is for the requests of a shutdown, Ordinary for all others. They may be the
	// same.
	Urgent, Ordinary kubernetes.Interface
	// NodeName is the name of the Node object.
	NodeName string
	// Pods are static pods, as [StaticPods] returns them.
	Pods []*v1.Pod
}

// Client shows one node and its static pods to an API server. The embedded reporter has
// the methods FlushPod, MarkNotReady and RestoreReadiness.
type Client struct {
	*apistatus.Reporter

	client kubernetes.Interface
	node   string
	events *recorder

	mu         sync.Mutex // guards what follows; never held during a request
	publishErr error      // the result of PublishError
}

// New makes a Client. The Client uses the logger of ctx, not its end. The caller must
// call [Client.Close].
func New(ctx context.Context, opts Options) (*Client, error) {
	reporter, err := apistatus.New(apistatus.Options{Client: opts.Urgent, NodeName: opts.NodeName})
	if err != nil {
		return nil, err
	}
	return &Client{
		Reporter: reporter,
		client:   opts.Ordinary,
		node:     opts.NodeName,
		events:   newRecorder(ctx, opts),
	}, nil
}

// Close stops the sending of events.
func (c *Client) Close() { c.events.close() }

// Node returns a reference to the node for events. Like the kubelet's, it has the node's
// name as the UID.
func (c *Client) Node() *v1.ObjectReference {
	return &v1.ObjectReference{Kind: "Node", Name: c.node, UID: types.UID(c.node)}
}

// NodeExists asks the API server once, for two seconds at most, whether it has the node.
// An error means that it did not answer.
func (c *Client) NodeExists(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	_, err := c.client.CoreV1().Nodes().Get(ctx, c.node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("failed to read node %q: %w", c.node, err)
	}
	return true, nil
}
