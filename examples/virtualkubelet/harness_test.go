package virtualkubelet_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/examples/virtualkubelet"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

const second = time.Second

// played is a runtime whose containers follow scripts, by their names. Killed ones
// have the exit code 137, others 0 or what codes says.
type played struct {
	*lifecycletest.Runtime

	scripts map[string]lifecycletest.Script
	codes   map[string]int32
	start   func(ctx context.Context, name string) error // nil: a start takes no time
	deaf    bool                                         // it tells of no exit
}

func newPlayed() *played {
	return &played{Runtime: lifecycletest.NewRuntime(), scripts: map[string]lifecycletest.Script{}, codes: map[string]int32{}}
}

func (r *played) StartContainer(ctx context.Context, pod *v1.Pod, c *v1.Container) (string, error) {
	if r.start != nil {
		if err := r.start(ctx, c.Name); err != nil {
			return "", err
		}
	}
	id := string(pod.UID) + "/" + c.Name
	r.Start(id, r.scripts[c.Name])
	return id, nil
}

func (r *played) Exited(id string) <-chan struct{} {
	if r.deaf {
		return nil
	}
	return r.Runtime.Exited(id)
}

func (r *played) ExitCode(id string) int32 {
	for _, exit := range r.Exits() {
		if exit.ID == id && exit.By == lifecycletest.ByKill {
			return 137
		}
	}
	return r.codes[id[strings.LastIndex(id, "/")+1:]]
}

// stops are the StopContainer calls so far, as ID and timeout, with their moments.
func (b *bed) stops() (asked []stop) {
	for _, s := range b.rt.Stops() {
		asked = append(asked, stop{s.ID, s.TimeoutSeconds, s.At.Sub(b.began)})
	}
	return asked
}

type stop struct {
	id      string
	timeout int64
	at      time.Duration
}

// news is one status that virtual-kubelet was told.
type news struct {
	pod *v1.Pod
	at  time.Duration
}

// bed is a provider on a played runtime, in a bubble, and what it says.
type bed struct {
	*testing.T
	*virtualkubelet.Provider

	rt     *played
	events *lifecycletest.Events
	began  time.Time

	mu    sync.Mutex
	heard []news
}

// inBubble runs a test where time is exact and every goroutine must end.
func inBubble(t *testing.T, do func(*bed), change ...func(*virtualkubelet.Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{T: t, rt: newPlayed(), events: &lifecycletest.Events{}, began: time.Now()}
		b.Provider = b.provider(change...)
		do(b)
		b.rt.Release()
		require.NoError(t, b.Close(t.Context()))
	})
}

// provider makes a provider whose statuses the bed hears.
func (b *bed) provider(change ...func(*virtualkubelet.Options)) *virtualkubelet.Provider {
	opts := virtualkubelet.Options{Runtime: b.rt}
	opts.Terminator.Events = b.events
	for _, c := range change {
		c(&opts)
	}
	p, err := virtualkubelet.New(opts)
	require.NoError(b, err)
	p.NotifyPods(b.Context(), func(pod *v1.Pod) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.heard = append(b.heard, news{pod, b.at()})
	})
	return p
}

func (b *bed) at() time.Duration { return time.Since(b.began) }

// last is the last that virtual-kubelet was told.
func (b *bed) last() news {
	b.mu.Lock()
	defer b.mu.Unlock()
	require.NotEmpty(b, b.heard)
	return b.heard[len(b.heard)-1]
}

// create makes the provider take a pod and waits until its start has settled.
func (b *bed) create(pod *v1.Pod) {
	require.NoError(b, b.CreatePod(b.Context(), pod))
	synctest.Wait()
}

// remove deletes a pod as the API server would, with a grace in seconds.
func (b *bed) remove(pod *v1.Pod, seconds int64) {
	require.NoError(b, b.DeletePod(b.Context(), deleted(pod, seconds, time.Now())))
}

// wait lets virtual time pass, and what comes of it.
func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// deleted is a pod that was deleted at a time.
func deleted(pod *v1.Pod, seconds int64, at time.Time) *v1.Pod {
	pod = pod.DeepCopy()
	pod.DeletionTimestamp = new(metav1.NewTime(at.Add(time.Duration(seconds) * second)))
	pod.DeletionGracePeriodSeconds = &seconds
	return pod
}

// podOf is a pod of regular containers, with a grace of 30 s.
func podOf(containers ...v1.Container) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid"},
		Spec:       v1.PodSpec{NodeName: "node", TerminationGracePeriodSeconds: new(int64(30)), Containers: containers},
	}
}

func plain(name string) v1.Container { return v1.Container{Name: name, Image: "image"} }

func sidecar(name string) v1.Container {
	return v1.Container{Name: name, RestartPolicy: new(v1.ContainerRestartPolicyAlways)}
}

// sleeping is a container with a sleep of seconds as its preStop hook.
func sleeping(name string, seconds int64) v1.Container {
	hook := &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: seconds}}
	return v1.Container{Name: name, Lifecycle: &v1.Lifecycle{PreStop: hook}}
}

// running is a container with a command as its preStop hook.
func running(name string) v1.Container {
	hook := &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"drain"}}}
	return v1.Container{Name: name, Lifecycle: &v1.Lifecycle{PreStop: hook}}
}

// terminated is how a container ended by a status.
func terminated(t require.TestingT, status v1.PodStatus, name string) v1.ContainerStateTerminated {
	all := slices.Concat(status.InitContainerStatuses, status.ContainerStatuses)
	i := slices.IndexFunc(all, func(s v1.ContainerStatus) bool { return s.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	require.NotNil(t, all[i].State.Terminated, name)
	return *all[i].State.Terminated
}
