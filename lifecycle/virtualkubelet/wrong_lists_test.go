//go:build go1.25

package virtualkubelet_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
	"github.com/kubegrace/kubegrace/shutdown"
)

// lines collects log lines.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(line))
	return len(line), nil
}

// take returns the lines since the last call.
func (l *lines) take() (all []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, l.all = l.all, nil
	return all
}

// context returns a context with a logger that writes the lines.
func (l *lines) context(ctx context.Context) context.Context {
	return klog.NewContext(ctx, textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(l))))
}

// One list lacks a running container: that of 5 s, or that of a termination just before. The container has not ended,
// because the next list has it again. It ends only when it is killed.
func TestAContainerMissingFromOneListHasNotEnded(t *testing.T) {
	for name, end := range map[string]func(*testbed, *v1.Pod){
		"while the pod runs":   func(*testbed, *v1.Pod) {},
		"during a termination": func(b *testbed, pod *v1.Pod) { b.deletePod(pod, 30) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *testbed) {
				b.rt.noExits = true
				b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
				pod := podOf(plain("app"))
				b.create(pod)
				wait(4900 * time.Millisecond)
				b.rt.SetLists(lifecycletest.Lists{Lacks: []string{"uid/app"}})
				end(b, pod)
				wait(second / 2) // the list of 5 s, or that of the termination, lacks it
				b.rt.SetLists(lifecycletest.Lists{})
				wait(20 * second)
				require.NotNil(b, b.currentPod().Status.ContainerStatuses[0].State.Running)
				b.deletePod(pod, 1)
				wait(20 * second)
				require.Len(b, b.rt.Exits(), 1)
				require.Equal(b, lifecycletest.ByKill, b.rt.Exits()[0].By)
				require.EqualValues(b, 137, terminated(b, b.last().pod.Status, "app").ExitCode)
			})
		})
	}
}

// A running container without an exit code vanishes from the lists at 5 and 6 s. It has then failed, and the
// log names it once, so that the embedder can find the wrong ID.
func TestAContainerMissingFromTwoListsIsLoggedAndFails(t *testing.T) {
	log := &lines{}
	inBubble(t, func(b *testbed) {
		b.rt.noExits = true
		require.NoError(b, b.CreatePod(log.context(b.Context()), podOf(plain("app"))))
		b.rt.SetLists(lifecycletest.Lists{Lacks: []string{"uid/app"}})
		wait(7 * second)
		require.Equal(b, v1.PodFailed, b.last().pod.Status.Phase)
		require.Equal(b, 6*second, b.last().at)
		all := log.take()
		require.Len(b, all, 1)
		require.Contains(b, all[0], "pod=\"ns/pod\" containerName=\"app\" containerID=\"uid/app\"")
	})
}

// All lists fail for a minute with one error, and for another minute with a second. The pod keeps running, and each
// error is logged once.
func TestFailedListsEndNothingAndAreLoggedOnce(t *testing.T) {
	log := &lines{}
	inBubble(t, func(b *testbed) {
		b.rt.noExits = true
		require.NoError(b, b.CreatePod(log.context(b.Context()), podOf(plain("app"))))
		for _, err := range []string{"one", "two"} {
			b.rt.SetLists(lifecycletest.Lists{Err: errors.New(err)})
			wait(time.Minute)
			require.Equal(b, v1.PodRunning, b.last().pod.Status.Phase)
			all := log.take()
			require.Len(b, all, 1)
			require.Contains(b, all[0], err)
			require.Contains(b, all[0], "ns/pod")
		}
	})
}

// StartContainer starts the container but returns an error, as if its answer was lost. A list, at once or after 20 s of
// failed lists, has the container. So the container is not started again.
func TestAStartWithALostAnswerIsNotRepeated(t *testing.T) {
	for name, script := range map[string]lifecycletest.Lists{"listed": {}, "listed late": {Err: errors.New("500")}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *testbed) {
				pod := restartingPod(plain("app"))
				b.rt.lost = true
				b.rt.SetLists(script)
				b.create(pod)
				wait(20 * second)
				b.rt.SetLists(lifecycletest.Lists{})
				wait(2 * second)
				require.Equal(b, v1.PodRunning, b.last().pod.Status.Phase)
				wait(time.Minute)
				b.rt.started.Range(func(id, _ any) bool {
					require.Equal(b, "uid/app", id, "a second run would be uid/app#1")
					return true
				})
				require.Zero(b, b.last().pod.Status.ContainerStatuses[0].RestartCount)
			})
		})
	}
}

// Adopt does not guess what runs: a failed list, and one with an invalid ID, are errors, and the pod is not
// adopted.
func TestAdoptFailsIfTheRuntimeCannotList(t *testing.T) {
	inBubble(t, func(b *testbed) {
		pod := podOf(plain("app"))
		b.rt.SetLists(lifecycletest.Lists{Err: errors.New("500")})
		require.EqualError(b, b.Adopt(b.Context(), virtualkubelet.Adopted{Pod: pod}), "failed to adopt pod ns/pod: 500")
		b.rt.SetLists(lifecycletest.Lists{})
		b.rt.Start(pod, "app", "containerd://1", lifecycletest.Script{})
		require.ErrorContains(b, b.Adopt(b.Context(), virtualkubelet.Adopted{Pod: pod}), `"containerd://"`)
		require.Empty(b, b.listed())
	})
}

// A list with a pod that has no UID, or is nil, is a bug of the PodRuntime. The whole list is ignored and logged
// once, and the running pods keep running.
func TestAnInvalidListOfPodsIsRejectedAndLoggedOnce(t *testing.T) {
	for name, wrong := range map[string]*v1.Pod{
		"the list of Statuses: pod ns/pod: UID: must be set": func() *v1.Pod { pod := podOf(); pod.UID = ""; return pod }(),
		"the list of Statuses: pod 1 is nil":                 nil,
	} {
		t.Run(name, func(t *testing.T) {
			log := &lines{}
			withFakePodRuntime(t, func(b *testbed, p *fakePodRuntime) {
				require.NoError(b, b.Close(b.Context()))
				var err error
				b.Provider, err = virtualkubelet.New(virtualkubelet.Options{Pods: p})
				require.NoError(b, err)
				_, err = b.GetPods(log.context(b.Context())) // the first call, whose context has the logger of the lists
				require.NoError(b, err)
				pod := podOf(plain("app"))
				b.create(pod)
				wait(6 * second)
				p.script(func() { p.more = []*v1.Pod{wrong} })
				wait(time.Minute)
				require.Equal(b, v1.PodRunning, b.podStatus("pod").Phase)
				all := log.take()
				require.Len(b, all, 1)
				require.Contains(b, all[0], name)
				p.script(func() { p.more = nil })
				_, err = b.KillPod(b.Context(), pod, shutdown.KillRequest{})
				require.NoError(b, err)
			})
		})
	}
}

// A runtime that polls every 5 s has neither Exited nor exit codes. A pod is deleted at 7 s with 30 s. The list of 10 s
// has its container running, so the stop has 27 s. Those of 15 and 20 s lack it, and two lists prove the end.
// StopTimeoutSlack is long enough for both.
func TestAPollingRuntimeHasTimeForTwoLists(t *testing.T) {
	log := &lines{}
	inBubble(t, func(b *testbed) {
		b.rt.noExitCodes = true
		b.rt.SetLists(lifecycletest.Lists{Poll: 5 * second})
		pod := podOf(plain("app"))
		require.NoError(b, b.CreatePod(log.context(b.Context()), pod))
		wait(7 * second)
		require.NoError(b, b.DeletePod(log.context(b.Context()), deleted(pod, 30, time.Now())))
		wait(13 * second)
		require.Equal(b, []stop{{"uid/app", 27, 10 * second}}, b.stops())
		require.Equal(b, 20*second, b.last().at)
		require.Equal(b, "ContainerStatusUnknown", terminated(b, b.last().pod.Status, "app").Reason)
		require.Len(b, log.take(), 1, "the unknown exit code")
	}, func(o *virtualkubelet.Options) {
		o.Runtime = struct{ virtualkubelet.Runtime }{o.Runtime} // hides Exited
	})
}

// oddPods is a PodRuntime that lists one pod, with a phase that Kubernetes does not have.
type oddPods struct{}

func (oddPods) Create(context.Context, *v1.Pod) error      { return nil }
func (oddPods) Stop(context.Context, *v1.Pod, int64) error { return nil }
func (oddPods) Delete(context.Context, *v1.Pod) error      { return nil }
func (oddPods) Statuses(context.Context) ([]*v1.Pod, error) {
	pod := podOf(plain("app"))
	pod.Status.Phase = "Odd"
	return []*v1.Pod{pod}, nil
}

// blockedLog is a logger's output that blocks from its first line until it is released.
type blockedLog struct {
	began, released chan struct{}
	once            sync.Once
}

func (b *blockedLog) Write(line []byte) (int, error) {
	b.once.Do(func() { close(b.began) })
	<-b.released
	return len(line), nil
}

// The line about the unknown phase cannot be written, because nobody reads the log. Calls about the pod do not wait
// for that.
func TestABlockedLoggerDoesNotBlockAPod(t *testing.T) {
	log := &blockedLog{began: make(chan struct{}), released: make(chan struct{})}
	p, err := virtualkubelet.New(virtualkubelet.Options{Pods: oddPods{}})
	require.NoError(t, err)
	p.NotifyPods(klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log)))), func(*v1.Pod) {})
	<-log.began
	defer func() {
		close(log.released)
		require.NoError(t, p.Close(t.Context()))
	}()
	require.Eventually(t, func() bool {
		pods, err := p.GetPods(t.Context()) // after the first list
		return err == nil && len(pods) == 1
	}, 10*second, time.Millisecond)
}
