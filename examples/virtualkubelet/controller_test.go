package virtualkubelet_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/kubegrace/kubegrace/examples/virtualkubelet"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

const (
	soon = 10 * second
	tick = 5 * time.Millisecond
)

// obedient is a runtime whose containers end once they are given as little time as
// they ask for, so that nothing here lasts as long as a grace.
type obedient struct {
	*played

	enough int64
}

func (o obedient) StopContainer(ctx context.Context, id string, timeoutSeconds int64) error {
	if timeoutSeconds <= o.enough {
		o.Exit(id)
	}
	return o.Runtime.StopContainer(ctx, id, timeoutSeconds)
}

// cluster is virtual-kubelet's own PodController, in real time, between a clientset
// and a provider.
type cluster struct {
	*testing.T
	corev1.PodInterface

	provider *virtualkubelet.Provider
	rt       *played
}

func newCluster(t *testing.T, enough int64) *cluster {
	t.Helper()
	clients, rt := newClientset(), newPlayed()
	provider, err := virtualkubelet.New(virtualkubelet.Options{Runtime: obedient{rt, enough}})
	require.NoError(t, err)
	all := informers.NewSharedInformerFactory(clients, 0)
	core := all.Core().V1()
	controller, err := node.NewPodController(node.PodControllerConfig{
		PodClient: clients.CoreV1(), PodInformer: core.Pods(), Provider: provider,
		ConfigMapInformer: core.ConfigMaps(), SecretInformer: core.Secrets(), ServiceInformer: core.Services(),
		EventRecorder: record.NewFakeRecorder(1000),
	})
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	all.Start(ctx.Done())
	var run sync.WaitGroup
	run.Go(func() {
		if err := controller.Run(ctx, 4); err != nil {
			t.Errorf("the controller failed: %v", err)
		}
	})
	t.Cleanup(func() {
		rt.Release()
		cancel()
		run.Wait()
		all.Shutdown()
		require.NoError(t, provider.Close(context.WithoutCancel(t.Context())))
	})
	<-controller.Ready()
	return &cluster{T: t, PodInterface: clients.CoreV1().Pods("ns"), provider: provider, rt: rt}
}

// run creates a pod and waits until the API server has it as running.
func (c *cluster) run(pod *v1.Pod) {
	_, err := c.Create(c.Context(), pod, metav1.CreateOptions{})
	require.NoError(c, err)
	c.until(func(now *v1.Pod) bool { return now.UID == pod.UID && now.Status.Phase == v1.PodRunning })
}

// kubectlDelete deletes the pod with a grace in seconds.
func (c *cluster) kubectlDelete(seconds int64) {
	require.NoError(c, c.Delete(c.Context(), "pod", metav1.DeleteOptions{GracePeriodSeconds: &seconds}))
}

// until waits until the API server's pod is as it should be.
func (c *cluster) until(so func(*v1.Pod) bool) {
	c.Helper()
	require.Eventually(c, func() bool {
		pod, err := c.Get(c.Context(), "pod", metav1.GetOptions{})
		return err == nil && so(pod)
	}, soon, tick)
}

// stopped waits until a container has been asked to stop with a timeout, less the
// seconds that this machine may have needed.
func (c *cluster) stopped(id string, timeout int64) {
	c.Helper()
	require.Eventually(c, func() bool {
		return slices.ContainsFunc(c.rt.Stops(), func(s lifecycletest.Stop) bool {
			return s.ID == id && s.TimeoutSeconds <= timeout && s.TimeoutSeconds > timeout-8
		})
	}, soon, tick)
}

// gone waits until nobody knows the pod any more.
func (c *cluster) gone() {
	c.Helper()
	require.Eventually(c, func() bool {
		_, apiErr := c.Get(c.Context(), "pod", metav1.GetOptions{})
		_, err := c.provider.GetPod(c.Context(), "ns", "pod")
		return apierrors.IsNotFound(apiErr) && errdefs.IsNotFound(err)
	}, soon, tick)
}

func TestARealControllerDeletesAndShortens(t *testing.T) {
	c := newCluster(t, 2)
	c.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
	c.rt.codes["app"] = 143
	began := time.Now()
	c.run(podOf(plain("app")))
	c.kubectlDelete(30)
	c.stopped("uid/app", 30)
	c.kubectlDelete(1)
	c.stopped("uid/app", 2)
	c.until(func(pod *v1.Pod) bool {
		if pod.Status.Phase != v1.PodFailed {
			return false
		}
		app := terminated(c, pod.Status, "app")
		return pod.DeletionTimestamp != nil && app.ExitCode == 143 && app.Reason == "Error"
	})
	c.gone()
	require.Less(t, time.Since(began), 20*second)
}

func TestARealControllerDeletesByForce(t *testing.T) {
	c := newCluster(t, 2)
	c.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
	c.run(podOf(plain("app")))
	c.kubectlDelete(3600)
	c.stopped("uid/app", 3600)
	c.kubectlDelete(0)
	c.stopped("uid/app", 2)
	c.gone()
}

// The regular container has ended when the deletion is hurried: a status that said so
// would have the controller remove the pod under its sidecar.
func TestARealControllerLeavesTimeToSidecars(t *testing.T) {
	c := newCluster(t, 600)
	c.rt.scripts["proxy"] = lifecycletest.Script{IgnoreTerm: true}
	pod := podOf(plain("app"))
	pod.Spec.InitContainers = []v1.Container{sidecar("proxy")}
	c.run(pod)
	c.kubectlDelete(3600)
	c.stopped("uid/proxy", 3600)
	c.kubectlDelete(600)
	c.stopped("uid/proxy", 600)
	c.until(func(pod *v1.Pod) bool { return pod.Status.Phase == v1.PodSucceeded })
}

func TestARealControllerReplacesAPod(t *testing.T) {
	c := newCluster(t, 2)
	c.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
	c.run(podOf(plain("app")))
	c.kubectlDelete(3600)
	c.stopped("uid/app", 3600)
	c.kubectlDelete(0)
	next := podOf(plain("app"))
	next.UID = types.UID("next")
	_, err := c.Create(t.Context(), next, metav1.CreateOptions{})
	require.NoError(t, err)
	c.until(func(pod *v1.Pod) bool { return pod.UID == "next" && pod.Status.Phase == v1.PodRunning })
	require.Len(t, c.rt.Exits(), 1)
}

// virtual-kubelet would delete a pod at once that waits for its init containers.
func TestARealControllerLeavesTimeToInitContainers(t *testing.T) {
	c := newCluster(t, 2)
	pod := podOf(plain("app"))
	pod.Spec.InitContainers = []v1.Container{plain("init")}
	_, err := c.Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	c.until(func(pod *v1.Pod) bool {
		return len(pod.Status.InitContainerStatuses) == 1 && pod.Status.InitContainerStatuses[0].State.Running != nil
	})
	c.kubectlDelete(3600)
	c.stopped("uid/init", 3600)
	c.until(func(pod *v1.Pod) bool { return pod.Status.Phase == v1.PodFailed })
}
