package apistatus

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// requests makes the HTTP requests of a [Reporter], each with a timeout and without client-go's own retries. By
// default client-go repeats a request up to ten times if the answer has Retry-After, so that its caller sees a
// hanging request instead of that answer. Only the RESTClient can turn this off, so requests uses the typed client
// only for the fake clientset, which has no RESTClient and never retries.
type requests struct {
	client  kubernetes.Interface
	timeout time.Duration // of one request
}

// noRetries turns off client-go's own retries of a request.
const noRetries = 0

// restClient returns the client's RESTClient. It returns nil if there is none, as with the fake clientset: requests then go
// through the typed client.
func (r requests) restClient() rest.Interface {
	client := r.client.CoreV1().RESTClient()
	if typed, ok := client.(*rest.RESTClient); ok && typed == nil { // the fake clientset returns a nil pointer of this type
		return nil
	}
	return client
}

// getPod reads a pod, through the typed client if there is no RESTClient.
func (r requests) getPod(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	pod := &v1.Pod{}
	err := withTimeout(ctx, r.timeout, func(ctx context.Context) (err error) {
		if client := r.restClient(); client != nil {
			return client.Get().Namespace(namespace).Resource("pods").Name(name).MaxRetries(noRetries).Do(ctx).Into(pod)
		}
		pod, err = r.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	return pod, err
}

// getNode reads a node, through the typed client if there is no RESTClient.
func (r requests) getNode(ctx context.Context, name string) (*v1.Node, error) {
	node := &v1.Node{}
	err := withTimeout(ctx, r.timeout, func(ctx context.Context) (err error) {
		if client := r.restClient(); client != nil {
			return client.Get().Resource("nodes").Name(name).MaxRetries(noRetries).Do(ctx).Into(node)
		}
		node, err = r.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		return err
	})
	return node, err
}

// patchStatus patches the status of a pod, or of a node if namespace is "", through the typed client if there is no RESTClient.
func (r requests) patchStatus(ctx context.Context, namespace, name string, patch []byte) error {
	resource, isNode := "pods", namespace == ""
	if isNode {
		resource = "nodes"
	}
	return withTimeout(ctx, r.timeout, func(ctx context.Context) (err error) {
		client := r.restClient()
		switch {
		case client != nil:
			err = client.Patch(types.StrategicMergePatchType).NamespaceIfScoped(namespace, !isNode).Resource(resource).Name(name).
				SubResource("status").Body(patch).MaxRetries(noRetries).Do(ctx).Error()
		case isNode:
			_, err = r.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		default:
			_, err = r.client.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		}
		return err
	})
}

// deletePod deletes a pod, through the typed client if there is no RESTClient.
func (r requests) deletePod(ctx context.Context, namespace, name string, options *metav1.DeleteOptions) error {
	return withTimeout(ctx, r.timeout, func(ctx context.Context) error {
		if client := r.restClient(); client != nil {
			return client.Delete().Namespace(namespace).Resource("pods").Name(name).Body(options).MaxRetries(noRetries).Do(ctx).Error()
		}
		return r.client.CoreV1().Pods(namespace).Delete(ctx, name, *options)
	})
}
