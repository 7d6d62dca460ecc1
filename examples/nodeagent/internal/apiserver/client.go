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

// nodeTimeout bounds the one question that the start of the agent waits for.
const nodeTimeout = 2 * time.Second

var (
	_ shutdown.Reporter        = (*Client)(nil)
	_ shutdown.ReadinessMarker = (*Client)(nil)
	_ lifecycle.EventRecorder  = (*Client)(nil)
)

// Options say whom a [Client] speaks to, and of what. All are required.
type Options struct {
	// Urgent is for what a shutdown has to say, Ordinary for everything else. They may
	// be the same.
	Urgent, Ordinary kubernetes.Interface
	// NodeName is the name of the node's object.
	NodeName string
	// Pods are those of [StaticPods].
	Pods []*v1.Pod
}

// Client shows one node and its static pods to an API server. FlushPods and
// MarkReady are those of the library's reporter.
type Client struct {
	*apistatus.Reporter

	client kubernetes.Interface
	node   string
	events *recorder

	mu      sync.Mutex // guards all below; never held while anything waits
	unheard error      // why the API server does not know of the shutdown; nil: it does, or there is none
}

// New makes a Client. ctx gives the logger; the caller must [Client.Close] what it
// gets.
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

// Close ends the sending of events.
func (c *Client) Close() { c.events.close() }

// Node refers to the node as the kubelet's events do, which name it as its UID too.
func (c *Client) Node() *v1.ObjectReference {
	return &v1.ObjectReference{Kind: "Node", Name: c.node, UID: types.UID(c.node)}
}

// NodeExists asks once, for two seconds at most. An error means that there was no
// answer to that question.
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
