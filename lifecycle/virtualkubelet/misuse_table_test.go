//go:build go1.25

package virtualkubelet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
	"github.com/kubegrace/kubegrace/shutdown"
)

// logLines keeps the lines of a log at verbosity 0.
type logLines struct {
	*testing.T

	mu    *sync.Mutex
	lines *[]string
	about []any
}

func (l logLines) Init(klog.RuntimeInfo)        {}
func (l logLines) Enabled(level int) bool       { return level == 0 }
func (l logLines) WithName(string) klog.LogSink { return l }
func (l logLines) WithValues(values ...any) klog.LogSink {
	l.about = append(append([]any{}, l.about...), values...)
	return l
}
func (l logLines) Info(_ int, text string, values ...any) { l.add(text, values) }
func (l logLines) Error(err error, text string, values ...any) {
	if err != nil {
		text += ": " + err.Error()
	}
	l.add(text, values)
}

// add adds a line "TEXT KEY=VALUE ...". It omits stacks, which differ from run to run.
func (l logLines) add(text string, values []any) {
	parts := []string{text}
	values = append(append([]any{}, l.about...), values...)
	for i := 0; i+1 < len(values); i += 2 {
		if values[i] != "stack" {
			parts = append(parts, fmt.Sprintf("%v=%v", values[i], values[i+1]))
		}
	}
	line := strings.Join(parts, " ")
	l.mu.Lock()
	defer l.mu.Unlock()
	*l.lines = append(*l.lines, line)
}

// requireLogged checks that exactly one line of the log contains a text: a misuse must be logged, and only once.
func (l logLines) requireLogged(text string) {
	l.Helper()
	l.requireLoggedAtMost(text, 1)
}

// requireLoggedAtMost checks that at least one line contains a text, and at most so many, because calls at the same
// time may each log it.
func (l logLines) requireLoggedAtMost(text string, atMost int) {
	l.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	found := 0
	for _, line := range *l.lines {
		if strings.Contains(line, text) {
			found++
		}
	}
	require.True(l, 1 <= found && found <= atMost, "%q is %d times in\n%s", text, found, strings.Join(*l.lines, "\n"))
}

// misusedRuntime is a runtime of which a test replaces functions.
type misusedRuntime struct {
	*lifecycletest.Runtime

	start func(pod *v1.Pod, name string) (string, error)
	list  atomic.Pointer[func(context.Context) ([]lifecycle.Container, error)] // changes while containers run
	code  func(string) (int32, bool)
}

func (m *misusedRuntime) StartContainer(_ context.Context, pod *v1.Pod, c *v1.Container) (string, error) {
	if m.start != nil {
		return m.start(pod, c.Name)
	}
	m.Start(pod, c.Name, pod.Name+"/"+c.Name, lifecycletest.Script{})
	return pod.Name + "/" + c.Name, nil
}

func (m *misusedRuntime) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	if list := m.list.Load(); list != nil {
		return (*list)(ctx)
	}
	return m.Runtime.Running(ctx, pod)
}

// setList replaces Running from now on.
func (m *misusedRuntime) setList(list func(context.Context) ([]lifecycle.Container, error)) {
	m.list.Store(&list)
}

func (m *misusedRuntime) ExitCode(id string) (int32, bool) {
	if m.code != nil {
		return m.code(id)
	}
	return m.Runtime.ExitCode(id)
}

// misusedPods is a PodRuntime of which a test replaces functions. Without them its pods run for ever.
type misusedPods struct {
	mu       sync.Mutex
	pods     []*v1.Pod
	create   func(context.Context)
	statuses func(context.Context)
	phase    v1.PodPhase
}

func (m *misusedPods) Create(ctx context.Context, pod *v1.Pod) error {
	if m.create != nil {
		m.create(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	pod = pod.DeepCopy()
	pod.Status = v1.PodStatus{Phase: m.phase}
	m.pods = append(m.pods, pod)
	return nil
}

func (m *misusedPods) Statuses(ctx context.Context) ([]*v1.Pod, error) {
	if m.statuses != nil {
		m.statuses(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pods, nil
}

func (*misusedPods) Stop(context.Context, *v1.Pod, int64) error { return nil }
func (*misusedPods) Delete(context.Context, *v1.Pod) error      { return nil }

// misuse has what a case of TestMisuse needs: a provider, its options, and a log of which it checks the lines.
type misuse struct {
	logLines
	*virtualkubelet.Provider

	options virtualkubelet.Options
	rt      *misusedRuntime
	pods    *misusedPods
	release chan struct{} // closed to end the calls of the embedder's code that hang
	told    *[]*v1.Pod    // the pods that virtual-kubelet was notified of
}

func (m *misuse) Context() context.Context {
	return klog.NewContext(m.logLines.Context(), klog.New(m.logLines))
}

// hang is a call of the embedder's code that returns only at the end of the test.
func (m *misuse) hang() { <-m.release }

// make makes the provider with the options.
func (m *misuse) make() {
	var err error
	m.Provider, err = virtualkubelet.New(m.options)
	require.NoError(m, err)
	m.NotifyPods(m.Context(), func(pod *v1.Pod) { *m.told = append(*m.told, pod) })
}

// create makes the provider, and creates a pod with the containers.
func (m *misuse) create(containers ...string) *v1.Pod {
	if m.Provider == nil {
		m.make()
	}
	pod := misusedPod("w", "uid", containers...)
	require.NoError(m, m.CreatePod(m.Context(), pod))
	synctest.Wait()
	return pod
}

// close closes the provider and returns the error of Close, whose context ends after 1 s.
func (m *misuse) close() error {
	ctx, cancel := context.WithTimeout(m.Context(), time.Second)
	defer cancel()
	return m.Close(ctx)
}

// misusedPod returns a pod in namespace default with a grace period of 5 s.
func misusedPod(name string, uid types.UID, containers ...string) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uid},
		Spec:       v1.PodSpec{TerminationGracePeriodSeconds: ptr.To(int64(5))},
	}
	for _, c := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: c})
	}
	return pod
}

// afterSlow is a time after which a call that hangs since the beginning, or beyond its limit, has been logged, which is
// after 5 s.
const afterSlow = 6 * time.Second

// Each case is a mistake that an embedder can make. The error or the log must say what is wrong, so that the embedder
// can find it; nothing may hang or panic.
func TestMisuse(t *testing.T) {
	for name, do := range map[string]func(m *misuse){
		"two containers of one name": func(m *misuse) {
			m.make()
			err := m.CreatePod(m.Context(), misusedPod("w", "uid", "a", "a"))
			require.EqualError(m, err, `pod default/w is refused: spec: two containers have the name "a"`)
			err = m.Adopt(m.Context(), virtualkubelet.Adopted{Pod: misusedPod("w", "uid", "a", "a")})
			require.ErrorContains(m, err, "two containers have the name")
		},
		"a pod without UID and name": func(m *misuse) {
			m.make()
			for method, err := range callAll(m.T, m.Provider, &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a"}}}}) {
				require.EqualError(m, err, "the pod has neither a UID nor a name", method)
			}
		},
		"two pods with one UID": func(m *misuse) {
			m.create("a")
			other := misusedPod("other", "uid", "a")
			want := `pod default/other is refused: metadata.uid: "uid" is that of pod default/w`
			require.EqualError(m, m.CreatePod(m.Context(), other), want)
			require.EqualError(m, m.UpdatePod(m.Context(), other), want)
			require.EqualError(m, m.Adopt(m.Context(), virtualkubelet.Adopted{Pod: other}), want)
		},
		"StartContainer returns no ID": func(m *misuse) {
			m.rt.start = func(*v1.Pod, string) (string, error) { return "", nil }
			m.create("a")
			wait(time.Minute)
			m.requireLogged(`Failed to start a container: StartContainer has returned no ID of container "a" pod=default/w containerName=a`)
		},
		"a start fails twice": func(m *misuse) {
			failures := 2
			m.rt.start = func(pod *v1.Pod, name string) (string, error) {
				if failures--; failures >= 0 {
					return "", errors.New("no image")
				}
				m.rt.Start(pod, name, name, lifecycletest.Script{})
				return name, nil
			}
			m.create("a")
			wait(time.Minute)
			m.requireLogged("Failed to start a container: no image")
			m.requireLogged("Started a container after earlier failures pod=default/w containerName=a failures=2")
		},
		"one ID for two containers": func(m *misuse) {
			m.rt.start = func(pod *v1.Pod, name string) (string, error) {
				m.rt.Start(pod, name, "1", lifecycletest.Script{})
				return "1", nil
			}
			m.create("a", "b")
			m.requireLogged(`Failed to start a container: StartContainer has returned the ID "1" of container "b", which container "a" has`)
		},
		"StartContainer returns an ID that is not listed": func(m *misuse) {
			m.rt.start = func(pod *v1.Pod, name string) (string, error) {
				m.rt.Start(pod, name, "real-id", lifecycletest.Script{})
				return "other-id", nil
			}
			m.create("a")
			wait(7 * time.Second) // the lists at 5 and 6 s lack the ID
			m.requireLogged("The runtime does not list a container and does not know its exit code " +
				"pod=default/w containerName=a containerID=other-id listedIDs=[real-id]")
		},
		"StartContainer hangs": func(m *misuse) {
			m.rt.start = func(*v1.Pod, string) (string, error) { m.hang(); return "", nil }
			pod := m.create("a")
			wait(2*time.Minute + afterSlow) // a start may take 2 min
			m.requireLogged("A call has not returned pod=default/w call=StartContainer of container a after=2m5s")
			require.NoError(m, m.DeletePod(m.Context(), pod))
			wait(afterSlow)
			m.requireLogged("A call has not returned since its context ended pod=default/w containerName=a call=the start after=5s")
			require.ErrorContains(m, m.close(), "calls that have not returned: StartContainer of container a of default/w: ")
		},
		"Running hangs": func(m *misuse) {
			m.create("a")
			m.rt.setList(func(context.Context) ([]lifecycle.Container, error) { m.hang(); return nil, nil })
			wait(time.Minute)
			m.requireLogged("A call has not returned pod=default/w call=Running after=35s")
		},
		"Running heeds its context": func(m *misuse) {
			m.create("a")
			m.rt.setList(func(ctx context.Context) ([]lifecycle.Container, error) { <-ctx.Done(); return nil, ctx.Err() })
			wait(2 * time.Minute)
			m.requireLogged("Failed to list the containers of a pod, will try again: Running has not returned within 30s: context deadline exceeded pod=default/w")
		},
		"Running panics": func(m *misuse) {
			m.create("a")
			m.rt.setList(func(context.Context) ([]lifecycle.Container, error) { panic("boom") })
			wait(time.Minute)
			m.requireLogged("Recovered from a panic: Running panicked: boom")
			m.rt.list.Store(nil)
			wait(time.Minute)
			m.requireLogged("Listed the containers of a pod after earlier failures pod=default/w failures=")
		},
		"the callback of NotifyPods hangs": func(m *misuse) {
			m.make()
			m.NotifyPods(m.Context(), func(*v1.Pod) { m.hang() })
			m.create("a")
			wait(afterSlow)
			m.requireLogged("A call has not returned pod=default/w call=the callback of NotifyPods after=5s")
			require.ErrorContains(m, m.close(), "calls that have not returned: the callback of NotifyPods of default/w: ")
		},
		"ExitCode hangs": func(m *misuse) {
			m.rt.code = func(string) (int32, bool) { m.hang(); return 0, false }
			m.create("a")
			m.rt.Exit("w/a")
			wait(2 * afterSlow)
			m.requireLogged("A call has not returned pod=default/w call=ExitCode after=5s")
		},
		"Status panics": func(m *misuse) {
			m.options.Status = func(*v1.Pod) { panic("no IP") }
			m.create("a")
			wait(time.Minute)
			m.requireLoggedAtMost("Recovered from a panic: Status panicked: no IP", 3)
		},
		"Status hangs, and Close": func(m *misuse) {
			m.options.Status = func(*v1.Pod) { m.hang() }
			m.create("a")
			ended := make(chan error, 1)
			go func() { ended <- m.Close(m.Context()) }()
			wait(afterSlow)
			m.requireLogged("Provider.Close waits for calls that have not returned calls=[Status of default/w")
			close(m.release)
			require.NoError(m, <-ended)
		},
		"Admit refuses without a reason": func(m *misuse) {
			m.options.Admit = func(*v1.Pod) shutdown.Admission { return shutdown.Admission{} }
			m.create("a")
			m.requireLogged("Options.Admit has refused the pod without a reason pod=default/w")
			last := (*m.told)[len(*m.told)-1]
			require.Equal(m, "Pod was rejected: Options.Admit has refused the pod without a reason", last.Status.Message)
		},
		"Admit hangs": func(m *misuse) {
			m.options.Admit = func(*v1.Pod) shutdown.Admission { m.hang(); return shutdown.Admission{Admit: true} }
			m.create("a")
			wait(afterSlow)
			m.requireLogged("A call has not returned pod=default/w call=Admit after=5s")
		},
		"ContainerEnded hangs": func(m *misuse) {
			m.options.ContainerEnded = func(context.Context, *v1.Pod, *v1.Container, string) error { m.hang(); return nil }
			m.create("a")
			m.rt.Exit("w/a")
			wait(time.Minute)
			m.requireLogged("A call has not returned pod=default/w call=ContainerEnded of container a after=35s")
		},
		"ContainerEnded fails": func(m *misuse) {
			m.options.ContainerEnded = func(context.Context, *v1.Pod, *v1.Container, string) error { return errors.New("busy") }
			m.create("a")
			m.rt.Exit("w/a")
			wait(time.Minute)
			m.requireLogged("Failed to clean up after a container, will try again: busy pod=default/w containerID=w/a")
		},
		"Statuses hangs": func(m *misuse) {
			m.options.Runtime, m.options.Pods = nil, m.pods
			m.pods.statuses = func(context.Context) { m.hang() }
			m.create("a")
			wait(time.Minute)
			m.requireLogged("A call has not returned pod=/ call=Statuses after=35s")
			require.ErrorContains(m, m.close(), "calls that have not returned: a call of Statuses: ")
		},
		"Stop has returned, and the pod runs on": func(m *misuse) {
			m.options.Runtime, m.options.Pods = nil, m.pods
			pod := m.create("a")
			require.NoError(m, m.DeletePod(m.Context(), pod))
			wait(time.Minute)
			m.requireLogged("Stop has returned, but Statuses still has the pod as running after its grace period pod=default/w")
			m.requireLogged("Failed to stop container: StopPod has not returned after")
		},
		"a phase that is none": func(m *misuse) {
			m.options.Runtime, m.options.Pods = nil, m.pods
			m.pods.phase = "Done"
			m.create("a")
			wait(time.Minute)
			m.requireLogged("Statuses has returned an unknown phase, the pod counts as running pod=default/w phase=Done")
			for _, pod := range *m.told {
				require.NotEqual(m, v1.PodPhase("Done"), pod.Status.Phase)
			}
		},
		"Create hangs": func(m *misuse) {
			m.options.Runtime, m.options.Pods = nil, m.pods
			m.pods.create = func(context.Context) { m.hang() }
			m.create("a")
			wait(3 * time.Minute)
			m.requireLogged("A call has not returned pod=default/w call=Create after=2m5s")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &misuse{
					logLines: logLines{T: t, mu: &sync.Mutex{}, lines: &[]string{}},
					rt:       &misusedRuntime{Runtime: lifecycletest.NewRuntime()}, pods: &misusedPods{phase: v1.PodRunning},
					release: make(chan struct{}), told: &[]*v1.Pod{},
				}
				m.options.Runtime = m.rt
				defer func() {
					select {
					case <-m.release:
					default:
						close(m.release)
					}
					m.rt.Release()
					require.NoError(t, m.Close(t.Context()))
				}()
				do(m)
			})
		})
	}
}

// The error of New names all invalid options, those of the terminator too.
func TestMisuseOfOptions(t *testing.T) {
	_, err := virtualkubelet.New(virtualkubelet.Options{
		Runtime: (*misusedRuntime)(nil), PollInterval: -1, Terminator: lifecycle.TerminatorOptions{StopTimeoutSlack: -1},
	})
	require.EqualError(t, err, `failed to make a provider: Runtime is a nil *virtualkubelet_test.misusedRuntime: leave it out or set a value
PollInterval: must not be negative, is -1ns
failed to create terminator: StopTimeoutSlack: must not be negative, is -1ns`)
}
