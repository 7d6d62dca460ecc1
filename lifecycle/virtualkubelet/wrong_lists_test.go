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

// lines are the lines of a log.
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

// One list that lacks a container that runs does not end it: neither while the pod runs, nor when it is
// terminated.
func TestAListThatLacksAContainerOnce(t *testing.T) {
	for name, end := range map[string]func(*bed, *v1.Pod){
		"while it runs":         func(*bed, *v1.Pod) {},
		"when it is terminated": func(b *bed, pod *v1.Pod) { b.deletePod(pod, 30) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				b.rt.exitless = true
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

// A container that two lists lack is lost, which the log says with its name.
func TestAContainerThatIsLost(t *testing.T) {
	log := &lines{}
	inBubble(t, func(b *bed) {
		b.rt.exitless = true
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

// A list that fails ends nothing, and is logged once until it fails in another way.
func TestListsThatFail(t *testing.T) {
	log := &lines{}
	inBubble(t, func(b *bed) {
		b.rt.exitless = true
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

// A start whose answer was lost has started its container: it is not started a second time.
func TestAStartWhoseAnswerIsLost(t *testing.T) {
	for name, script := range map[string]lifecycletest.Lists{"listed": {}, "listed late": {Err: errors.New("500")}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				pod := always(plain("app"))
				b.rt.lost = true
				b.rt.SetLists(script)
				b.create(pod)
				wait(20 * second)
				b.rt.SetLists(lifecycletest.Lists{})
				wait(2 * second)
				require.Equal(b, v1.PodRunning, b.last().pod.Status.Phase)
				wait(time.Minute)
				b.rt.started.Range(func(id, _ any) bool {
					require.Equal(b, "uid/app", id)
					return true
				})
				require.Zero(b, b.last().pod.Status.ContainerStatuses[0].RestartCount)
			})
		})
	}
}

// A runtime that cannot say what runs is no reason to adopt a pod as ended.
func TestAnAdoptionThatCannotBeAsked(t *testing.T) {
	inBubble(t, func(b *bed) {
		pod := podOf(plain("app"))
		b.rt.SetLists(lifecycletest.Lists{Err: errors.New("500")})
		require.EqualError(b, b.Adopt(b.Context(), virtualkubelet.Adopted{Pod: pod}), "failed to adopt pod ns/pod: 500")
		b.rt.SetLists(lifecycletest.Lists{})
		b.rt.Start(pod, "app", "containerd://1", lifecycletest.Script{})
		require.ErrorContains(b, b.Adopt(b.Context(), virtualkubelet.Adopted{Pod: pod}), `"containerd://"`)
		require.Empty(b, b.listed())
	})
}

// A list of pods without UIDs ends no pod, and is logged once.
func TestStatusesThatAreWrong(t *testing.T) {
	for name, wrong := range map[string]*v1.Pod{
		"the list of Statuses: pod ns/pod: UID: must be set": func() *v1.Pod { pod := podOf(); pod.UID = ""; return pod }(),
		"the list of Statuses: pod 1 is nil":                 nil,
	} {
		t.Run(name, func(t *testing.T) {
			log := &lines{}
			withPlayedPods(t, func(b *bed, p *playedPods) {
				require.NoError(b, b.Close(b.Context()))
				var err error
				b.Provider, err = virtualkubelet.New(virtualkubelet.Options{Pods: p})
				require.NoError(b, err)
				_, err = b.GetPods(log.context(b.Context()))
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

// A runtime that polls, and tells of no exit and no exit code, has the time for two of its lists.
func TestARuntimeThatPolls(t *testing.T) {
	log := &lines{}
	inBubble(t, func(b *bed) {
		b.rt.codeless = true
		b.rt.SetLists(lifecycletest.Lists{Poll: 5 * second})
		pod := podOf(plain("app"))
		require.NoError(b, b.CreatePod(log.context(b.Context()), pod))
		wait(7 * second)
		require.NoError(b, b.DeletePod(log.context(b.Context()), deleted(pod, 30, time.Now())))
		wait(13 * second)
		require.Equal(b, []stop{{"uid/app", 27, 10 * second}}, b.stops(), "the next poll says that it runs")
		require.Equal(b, 20*second, b.last().at)
		require.Equal(b, "ContainerStatusUnknown", terminated(b, b.last().pod.Status, "app").Reason)
		require.Len(b, log.take(), 1, "that the exit code is not known")
	}, func(o *virtualkubelet.Options) {
		o.Runtime = struct{ virtualkubelet.Runtime }{o.Runtime}
	})
}
