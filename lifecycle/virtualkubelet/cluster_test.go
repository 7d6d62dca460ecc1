//go:build go1.25

package virtualkubelet_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/kubegrace/kubegrace/internal/apiserverprocess"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
)

const (
	// waitAtMost is far longer than any of these waits takes, because the machine may be busy.
	waitAtMost = time.Minute
	tick       = 5 * time.Millisecond
)

// quickRuntime is a runtime for tests in real time: a container exits at once if it is stopped with a timeout of
// exitAtMost seconds or less. A test can therefore observe a stop with a long timeout, and then end it with a short one.
type quickRuntime struct {
	*scriptedRuntime

	exitAtMost int64 // seconds
}

func (o quickRuntime) StopContainer(ctx context.Context, id string, timeoutSeconds int64) error {
	if timeoutSeconds <= o.exitAtMost {
		o.Exit(id)
	}
	return o.Runtime.StopContainer(ctx, id, timeoutSeconds)
}

// cluster is virtual-kubelet's own PodController, in real time, between a real API server
// and a provider.
type cluster struct {
	*testing.T
	corev1.PodInterface

	provider *virtualkubelet.Provider
	rt       *scriptedRuntime
	events   *record.FakeRecorder // virtual-kubelet's
	log      strings.Builder      // events that recordedEvents has read
	clients  kubernetes.Interface
}

// newCluster returns a cluster with a [quickRuntime]: a stop with a timeout of exitAtMost seconds or less ends a
// container at once.
func newCluster(t *testing.T, exitAtMost int64, kind ...func(*virtualkubelet.Options)) *cluster {
	t.Helper()
	quick := func(o *virtualkubelet.Options) { o.Runtime = quickRuntime{o.Runtime.(*scriptedRuntime), exitAtMost} }
	c := prepareCluster(t, append([]func(*virtualkubelet.Options){quick}, kind...)...)
	c.start()
	return c
}

// prepareCluster returns a cluster whose controller has not started. change modifies the provider's options.
func prepareCluster(t *testing.T, change ...func(*virtualkubelet.Options)) *cluster {
	t.Helper()
	clients, err := kubernetes.NewForConfig(&rest.Config{Host: apiserverprocess.Start(t), QPS: -1})
	require.NoError(t, err)
	rt := newScriptedRuntime()
	opts := virtualkubelet.Options{Runtime: rt}
	for _, change := range change {
		change(&opts)
	}
	provider, err := virtualkubelet.New(opts)
	require.NoError(t, err)
	t.Cleanup(func() {
		rt.Release()
		require.NoError(t, provider.Close(context.WithoutCancel(t.Context())))
	})
	return &cluster{
		T: t, PodInterface: clients.CoreV1().Pods("ns"), clients: clients,
		provider: provider, rt: rt, events: record.NewFakeRecorder(1000),
	}
}

// start runs the controller until the end of the test.
func (c *cluster) start() {
	c.Helper()
	all := informers.NewSharedInformerFactory(c.clients, 0)
	core := all.Core().V1()
	controller, err := node.NewPodController(node.PodControllerConfig{
		PodClient: c.clients.CoreV1(), PodInformer: core.Pods(), Provider: c.provider,
		ConfigMapInformer: core.ConfigMaps(), SecretInformer: core.Secrets(), ServiceInformer: core.Services(),
		EventRecorder: c.events,
	})
	require.NoError(c, err)
	ctx, cancel := context.WithCancel(c.Context())
	all.Start(ctx.Done())
	var run sync.WaitGroup
	run.Go(func() {
		if err := controller.Run(ctx, 4); err != nil {
			c.Errorf("the controller failed: %v", err)
		}
	})
	c.Cleanup(func() {
		cancel()
		run.Wait()
		all.Shutdown()
	})
	<-controller.Ready()
}

// create creates a pod and returns it as the API server has stored it.
func (c *cluster) create(pod *v1.Pod) *v1.Pod {
	c.Helper()
	created, err := c.Create(c.Context(), pod, metav1.CreateOptions{})
	require.NoError(c, err)
	return created
}

// createRunning creates a pod and waits until the API server has it as running.
func (c *cluster) createRunning(pod *v1.Pod) {
	c.Helper()
	created := c.create(pod)
	c.awaitPod(func(now *v1.Pod) bool { return now.UID == created.UID && now.Status.Phase == v1.PodRunning })
}

// kubectlDeleteWithGrace deletes the pod with a grace period in seconds.
func (c *cluster) kubectlDeleteWithGrace(seconds int64) {
	require.NoError(c, c.Delete(c.Context(), "pod", metav1.DeleteOptions{GracePeriodSeconds: &seconds}))
}

// awaitPod waits until the pod on the API server meets a condition.
func (c *cluster) awaitPod(condition func(*v1.Pod) bool) {
	c.Helper()
	require.Eventually(c, func() bool {
		pod, err := c.Get(c.Context(), "pod", metav1.GetOptions{})
		return err == nil && condition(pod)
	}, waitAtMost, tick)
}

// awaitStopWithTimeout waits until a container is stopped with a timeout in seconds. On a busy machine up to 8 s of the grace
// period may have passed by then, so the timeout may be that much less.
func (c *cluster) awaitStopWithTimeout(name string, timeout int64) {
	c.Helper()
	require.Eventually(c, func() bool {
		return slices.ContainsFunc(c.rt.Stops(), func(s lifecycletest.Stop) bool {
			return strings.HasSuffix(s.ID, "/"+name) && s.TimeoutSeconds <= timeout && s.TimeoutSeconds > timeout-8
		})
	}, waitAtMost, tick)
}

// awaitGone waits until neither the API server nor the provider knows the pod.
func (c *cluster) awaitGone() {
	c.Helper()
	require.Eventually(c, func() bool {
		_, apiErr := c.Get(c.Context(), "pod", metav1.GetOptions{})
		_, err := c.provider.GetPod(c.Context(), "ns", "pod")
		return apierrors.IsNotFound(apiErr) && errdefs.IsNotFound(err)
	}, waitAtMost, tick)
}
