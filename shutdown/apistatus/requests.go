package apistatus

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// requests makes the requests of a [Reporter], each within a time of its own.
//
// client-go tries again by itself what is answered with Retry-After, up to ten times,
// and waits in between: its caller sees a request that hangs, and does not hear that
// the server asks for patience. The typed client cannot be told to leave that, its
// RESTClient can. The fake clientset has none and never tries again.
type requests struct {
	client  kubernetes.Interface
	timeout time.Duration // of one request
}

// rest gives the client that makes a request once; nil: there is none.
func (r requests) rest() rest.Interface {
	client := r.client.CoreV1().RESTClient()
	if none, ok := client.(*rest.RESTClient); ok && none == nil {
		return nil
	}
	return client
}

// within makes a request and bounds it. An error says so when it is the bound's.
func (r requests) within(ctx context.Context, request func(context.Context) error) error {
	bound, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	err := request(bound)
	if err != nil && bound.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("no answer within %v: %w", r.timeout, err)
	}
	return err
}

func (r requests) getPod(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	pod := &v1.Pod{}
	err := r.within(ctx, func(ctx context.Context) (err error) {
		if client := r.rest(); client != nil {
			return client.Get().Namespace(namespace).Resource("pods").Name(name).MaxRetries(0).Do(ctx).Into(pod)
		}
		pod, err = r.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	return pod, err
}

// patchPodStatus sends a strategic merge patch.
func (r requests) patchPodStatus(ctx context.Context, namespace, name string, patch []byte) error {
	return r.within(ctx, func(ctx context.Context) error {
		if client := r.rest(); client != nil {
			return client.Patch(types.StrategicMergePatchType).Namespace(namespace).Resource("pods").Name(name).
				SubResource("status").Body(patch).MaxRetries(0).Do(ctx).Error()
		}
		_, err := r.client.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
}

func (r requests) deletePod(ctx context.Context, namespace, name string, options *metav1.DeleteOptions) error {
	return r.within(ctx, func(ctx context.Context) error {
		if client := r.rest(); client != nil {
			return client.Delete().Namespace(namespace).Resource("pods").Name(name).Body(options).MaxRetries(0).Do(ctx).Error()
		}
		return r.client.CoreV1().Pods(namespace).Delete(ctx, name, *options)
	})
}

func (r requests) getNode(ctx context.Context, name string) (*v1.Node, error) {
	node := &v1.Node{}
	err := r.within(ctx, func(ctx context.Context) (err error) {
		if client := r.rest(); client != nil {
			return client.Get().Resource("nodes").Name(name).MaxRetries(0).Do(ctx).Into(node)
		}
		node, err = r.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		return err
	})
	return node, err
}

// patchNodeStatus sends a strategic merge patch.
func (r requests) patchNodeStatus(ctx context.Context, name string, patch []byte) error {
	return r.within(ctx, func(ctx context.Context) error {
		if client := r.rest(); client != nil {
			return client.Patch(types.StrategicMergePatchType).Resource("nodes").Name(name).
				SubResource("status").Body(patch).MaxRetries(0).Do(ctx).Error()
		}
		_, err := r.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
}
