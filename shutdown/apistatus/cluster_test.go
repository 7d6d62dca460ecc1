package apistatus_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	k8stesting "k8s.io/client-go/testing"

	"github.com/kubegrace/kubegrace/shutdown/apistatus"
)

const nodeName = "node-1"

// call is a request to the cluster.
type call struct {
	Verb, Name string
	Body       string // of a patch
	At         time.Time
	Delete     metav1.DeleteOptions // of a delete
}

// cluster is client-go's fake clientset with faults. It holds no mutex while a fault waits, so that it works
// in synctest bubbles.
type cluster struct {
	*fake.Clientset
	// fault may wait, and returns the error of a call; nil: no call fails.
	fault func(ctx context.Context, c call) error
	// ignorePatches drops patches. A test sets it if the patch has the UID of another pod: a real API server refuses
	// such a patch, but the fake clientset would apply it.
	ignorePatches bool

	mu    sync.Mutex // guards calls
	calls []call
}

var _ kubernetes.Interface = (*cluster)(nil)

// newCluster returns a cluster with objects. It uses the plain tracker, because the one that manages
// fields takes 10 ms for a patch.
func newCluster(objects ...runtime.Object) *cluster {
	c := &cluster{Clientset: &fake.Clientset{}}
	tracker := k8stesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())
	c.AddReactor("*", "*", k8stesting.ObjectReaction(tracker))
	for _, object := range objects {
		if err := tracker.Add(object); err != nil {
			panic(err) // the test is wrong
		}
	}
	return c
}

// reporter makes a reporter of the cluster.
func (c *cluster) reporter(t *testing.T, change ...func(*apistatus.Options)) *apistatus.Reporter {
	t.Helper()
	opts := apistatus.Options{Client: c, NodeName: nodeName}
	for _, set := range change {
		set(&opts)
	}
	r, err := apistatus.New(opts)
	require.NoError(t, err)
	return r
}

// verbs returns the verbs of the calls so far, in order.
func (c *cluster) verbs() []string {
	var verbs []string
	for _, call := range c.callsOf(anyVerb) {
		verbs = append(verbs, call.Verb)
	}
	return verbs
}

// anyVerb stands for all verbs in callsOf and failFirst.
const anyVerb = ""

// callsOf returns the calls of a verb so far.
func (c *cluster) callsOf(verb string) []call {
	c.mu.Lock()
	defer c.mu.Unlock()
	var calls []call
	for _, call := range c.calls {
		if verb == anyVerb || call.Verb == verb {
			calls = append(calls, call)
		}
	}
	return calls
}

// recordCall records a call, lets the fault wait, and returns the fault's error or that of ctx.
func (c *cluster) recordCall(ctx context.Context, call call) error {
	call.At = time.Now()
	c.mu.Lock()
	c.calls = append(c.calls, call)
	c.mu.Unlock()
	if c.fault != nil {
		if err := c.fault(ctx, call); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// pod returns a pod of the cluster.
func (c *cluster) pod(t *testing.T, name string) *v1.Pod {
	t.Helper()
	pod, err := c.Clientset.CoreV1().Pods(metav1.NamespaceDefault).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return pod
}

// node returns the node of the cluster.
func (c *cluster) node(t *testing.T) *v1.Node {
	t.Helper()
	node, err := c.Clientset.CoreV1().Nodes().Get(t.Context(), nodeName, metav1.GetOptions{})
	require.NoError(t, err)
	return node
}

// CoreV1 returns a client that records calls of pods and nodes, and lets the test fail them.
func (c *cluster) CoreV1() corev1.CoreV1Interface { return core{c.Clientset.CoreV1(), c} }

// core is the client that CoreV1 returns.
type core struct {
	corev1.CoreV1Interface
	c *cluster
}

// Pods returns a client whose calls are recorded.
func (a core) Pods(namespace string) corev1.PodInterface {
	return podCalls{a.CoreV1Interface.Pods(namespace), a.c}
}

// Nodes returns a client whose calls are recorded.
func (a core) Nodes() corev1.NodeInterface { return nodeCalls{a.CoreV1Interface.Nodes(), a.c} }

// podCalls records each call, and returns the error that the test has set for it.
type podCalls struct {
	corev1.PodInterface
	c *cluster
}

// Get records the call and returns the pod.
func (p podCalls) Get(ctx context.Context, name string, options metav1.GetOptions) (*v1.Pod, error) {
	if err := p.c.recordCall(ctx, call{Verb: "get", Name: name}); err != nil {
		return nil, err
	}
	return p.PodInterface.Get(ctx, name, options)
}

// Patch records the call and its body, and patches the pod unless the cluster ignores patches.
func (p podCalls) Patch(ctx context.Context, name string, as types.PatchType, data []byte, options metav1.PatchOptions, sub ...string) (*v1.Pod, error) {
	if err := p.c.recordCall(ctx, call{Verb: patchVerb(sub), Name: name, Body: string(data)}); err != nil {
		return nil, err
	}
	if p.c.ignorePatches {
		return p.PodInterface.Get(ctx, name, metav1.GetOptions{})
	}
	return p.PodInterface.Patch(ctx, name, as, data, options, sub...)
}

// Delete records the call and deletes the pod.
func (p podCalls) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	if err := p.c.recordCall(ctx, call{Verb: "delete", Name: name, Delete: options}); err != nil {
		return err
	}
	return p.PodInterface.Delete(ctx, name, options)
}

// nodeCalls records each call about the node, and returns the error that the test has set for it.
type nodeCalls struct {
	corev1.NodeInterface
	c *cluster
}

// Get records the call and returns the node.
func (n nodeCalls) Get(ctx context.Context, name string, options metav1.GetOptions) (*v1.Node, error) {
	if err := n.c.recordCall(ctx, call{Verb: "get", Name: name}); err != nil {
		return nil, err
	}
	return n.NodeInterface.Get(ctx, name, options)
}

// Patch records the call and its body, and patches the node.
func (n nodeCalls) Patch(ctx context.Context, name string, as types.PatchType, data []byte, options metav1.PatchOptions, sub ...string) (*v1.Node, error) {
	if err := n.c.recordCall(ctx, call{Verb: patchVerb(sub), Name: name, Body: string(data)}); err != nil {
		return nil, err
	}
	return n.NodeInterface.Patch(ctx, name, as, data, options, sub...)
}

// patchVerb returns the verb of a patch of an object or of a subresource: "patch" or "patch status".
func patchVerb(subresources []string) string {
	return strings.Join(append([]string{"patch"}, subresources...), " ")
}

// statusError returns the error of client-go for an answer with a status code.
func statusError(code int) error {
	const isUnexpected = false
	return apierrors.NewGenericServerResponse(code, http.MethodPatch, schema.GroupResource{Resource: "pods"}, "web", "scripted by the test", 0, isUnexpected)
}

// failFirst makes the first n calls of a verb fail.
func failFirst(n int, verb string, err error) func(context.Context, call) error {
	var mu sync.Mutex
	return func(_ context.Context, c call) error {
		mu.Lock()
		defer mu.Unlock()
		if isOfVerb := verb == anyVerb || c.Verb == verb; n == 0 || !isOfVerb {
			return nil
		}
		n--
		return err
	}
}

// everyCall is more calls than any test makes.
const everyCall = 1_000_000

// errRefused is a network error.
var errRefused = errors.New("connect: connection refused")

// delayAll delays each call.
func delayAll(d time.Duration) func(context.Context, call) error {
	return func(context.Context, call) error {
		<-time.After(d)
		return nil
	}
}

// withTimeout returns the test's context with a timeout.
func withTimeout(t testing.TB, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}
