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
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
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

// logLines is a log sink that stores the lines of verbosity 0.
type logLines struct {
	*testing.T

	mu         *sync.Mutex
	lines      *[]string
	withValues []any // keys and values of WithValues, which each line has
}

func (l logLines) Init(klog.RuntimeInfo)        {}
func (l logLines) Enabled(level int) bool       { return level == 0 }
func (l logLines) WithName(string) klog.LogSink { return l }
func (l logLines) WithValues(values ...any) klog.LogSink {
	l.withValues = append(append([]any{}, l.withValues...), values...)
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
	values = append(append([]any{}, l.withValues...), values...)
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

// requireLoggedAtMost checks that a text is in one line of the log at least, and in atMost lines at most: calls that are
// made at the same time may each log it.
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

// misusedRuntime is a scripted runtime. A test replaces one of its methods by setting the field for that method.
type misusedRuntime struct {
	*lifecycletest.Runtime

	startContainer func(pod *v1.Pod, name string) (string, error)
	list           atomic.Pointer[func(context.Context) ([]lifecycle.Container, error)] // for Running; changes while containers run
	exitCode       func(string) (int32, bool)
	exited         func(string) <-chan struct{}
}

func (m *misusedRuntime) StartContainer(_ context.Context, pod *v1.Pod, c *v1.Container) (string, error) {
	if m.startContainer != nil {
		return m.startContainer(pod, c.Name)
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
	if m.exitCode != nil {
		return m.exitCode(id)
	}
	return m.Runtime.ExitCode(id)
}

func (m *misusedRuntime) Exited(id string) <-chan struct{} {
	if m.exited != nil {
		return m.exited(id)
	}
	return m.Runtime.Exited(id)
}

// misusedPods is a PodRuntime whose pods never end. A test may add calls to Create and Statuses.
type misusedPods struct {
	mu       sync.Mutex
	pods     []*v1.Pod
	create   func(context.Context) // Create calls it first; nil: no call
	statuses func(context.Context) // Statuses calls it first; nil: no call
}

func (m *misusedPods) Create(ctx context.Context, pod *v1.Pod) error {
	if m.create != nil {
		m.create(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	pod = pod.DeepCopy()
	pod.Status = v1.PodStatus{Phase: v1.PodRunning}
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

// alsoList makes Statuses list another pod, which may be nil, after the first that was created.
func (m *misusedPods) alsoList(other *v1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pods = []*v1.Pod{m.pods[0], other}
}

func (*misusedPods) Stop(context.Context, *v1.Pod, int64) error { return nil }
func (*misusedPods) Delete(context.Context, *v1.Pod) error      { return nil }

// misuse has what a case of playMisuses needs: a provider, its options, and a log of which it checks the lines.
type misuse struct {
	logLines
	*virtualkubelet.Provider

	options  virtualkubelet.Options
	rt       *misusedRuntime
	pods     *misusedPods
	release  chan struct{} // closed to end the calls of the embedder's code that hang
	notified *[]*v1.Pod    // the pods that virtual-kubelet was notified of
}

// lastStatus returns the last status that virtual-kubelet was notified of.
func (m *misuse) lastStatus() v1.PodStatus { return (*m.notified)[len(*m.notified)-1].Status }

// requireUnknownExitCode checks that the last run of the only container has ended, and that its exit code is unknown.
func (m *misuse) requireUnknownExitCode() {
	m.Helper()
	end := m.lastStatus().ContainerStatuses[0].LastTerminationState.Terminated
	require.NotNil(m, end)
	require.Equal(m, "ContainerStatusUnknown", end.Reason)
}

func (m *misuse) Context() context.Context {
	return klog.NewContext(m.logLines.Context(), klog.New(m.logLines))
}

// hang blocks until the end of the test: it stands for the embedder's code that does not return.
func (m *misuse) hang() { <-m.release }

// makeProvider makes the provider with m.options.
func (m *misuse) makeProvider() {
	var err error
	m.Provider, err = virtualkubelet.New(m.options)
	require.NoError(m, err)
	m.NotifyPods(m.Context(), func(pod *v1.Pod) { *m.notified = append(*m.notified, pod) })
}

// createPodWithContainers makes the provider unless there is one, and creates the pod default/w with these containers.
func (m *misuse) createPodWithContainers(containers ...string) *v1.Pod {
	if m.Provider == nil {
		m.makeProvider()
	}
	pod := podInDefault("w", "uid", containers...)
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

// podInDefault returns a pod in namespace default with a grace period of 5 s.
func podInDefault(name string, uid types.UID, containers ...string) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uid},
		Spec:       v1.PodSpec{TerminationGracePeriodSeconds: ptr.To(int64(5))},
	}
	for _, c := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: c})
	}
	return pod
}

// hangIsLogged is 1 s more than the 5 s after which a call that hangs is logged. The 5 s count from the beginning of the
// call, or from the end of its time limit if it has one.
const hangIsLogged = 6 * time.Second

// playMisuses plays cases, each with a misuse of its own. Each case is a mistake that an embedder can make. The error or the log
// must say what is wrong, so that the embedder can find it; nothing may hang or panic.
func playMisuses(t *testing.T, cases map[string]func(m *misuse)) {
	t.Helper()
	for name, play := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &misuse{
					logLines: logLines{T: t, mu: &sync.Mutex{}, lines: &[]string{}},
					rt:       &misusedRuntime{Runtime: lifecycletest.NewRuntime()}, pods: &misusedPods{},
					release: make(chan struct{}), notified: &[]*v1.Pod{},
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
				play(m)
			})
		})
	}
}

// Pods that contradict each other, themselves or the runtime are refused, or logged.
func TestMisuseOfPods(t *testing.T) {
	playMisuses(t, map[string]func(m *misuse){
		"two containers with one name": func(m *misuse) {
			m.makeProvider()
			err := m.CreatePod(m.Context(), podInDefault("w", "uid", "a", "a"))
			require.EqualError(m, err, `pod default/w is refused: spec: two containers have the name "a"`)
			err = m.Adopt(m.Context(), virtualkubelet.Adopted{Pod: podInDefault("w", "uid", "a", "a")})
			require.ErrorContains(m, err, "two containers have the name")
		},
		"two pods with one UID": func(m *misuse) {
			m.createPodWithContainers("a")
			other := podInDefault("other", "uid", "a")
			want := `pod default/other is refused: metadata.uid: "uid" is that of pod default/w`
			require.EqualError(m, m.CreatePod(m.Context(), other), want)
			require.EqualError(m, m.UpdatePod(m.Context(), other), want)
			require.EqualError(m, m.Adopt(m.Context(), virtualkubelet.Adopted{Pod: other}), want)
		},
		"a pod of a previous agent is not adopted": func(m *misuse) {
			m.rt.Start(podInDefault("w", "uid", "a", "b"), "b", "of-the-previous-agent", lifecycletest.Script{})
			m.createPodWithContainers("a", "b")
			wait(time.Minute)
			m.requireLogged(`A call has failed: the runtime lists container "b" twice, with the IDs "of-the-previous-agent" and "w/b": ` +
				"was the pod not adopted after a restart of the agent pod=default/w call=the search for runs of a previous agent")
		},
	})
}

// StartContainer does not do what its contract says. The log has one line about it. A call that hangs is logged 5 s after its
// time limit of 2 min.
func TestMisuseOfStartContainer(t *testing.T) {
	playMisuses(t, map[string]func(m *misuse){
		"it returns no ID": func(m *misuse) {
			m.rt.startContainer = func(*v1.Pod, string) (string, error) { return "", nil }
			m.createPodWithContainers("a")
			wait(time.Minute)
			m.requireLogged(`A call has failed: StartContainer has returned no ID of container "a" pod=default/w call=StartContainer of container a`)
			require.Equal(m, "StartError", m.lastStatus().ContainerStatuses[0].LastTerminationState.Terminated.Reason)
		},
		"it panics": func(m *misuse) {
			m.rt.startContainer = func(*v1.Pod, string) (string, error) { panic("no image") }
			m.createPodWithContainers("a")
			wait(time.Minute)
			m.requireLogged("A call has failed: ")
			require.Equal(m, "StartError", m.lastStatus().ContainerStatuses[0].LastTerminationState.Terminated.Reason)
		},
		"it fails twice": func(m *misuse) {
			failures := 2
			m.rt.startContainer = func(pod *v1.Pod, name string) (string, error) {
				if failures--; failures >= 0 {
					return "", errors.New("no image")
				}
				m.rt.Start(pod, name, name, lifecycletest.Script{})
				return name, nil
			}
			m.createPodWithContainers("a")
			wait(time.Minute)
			m.requireLogged("A call has failed: no image")
			m.requireLogged("A call has succeeded after earlier failures pod=default/w call=StartContainer of container a failures=2")
		},
		"it returns one ID for two containers": func(m *misuse) {
			m.rt.startContainer = func(pod *v1.Pod, name string) (string, error) {
				m.rt.Start(pod, name, "1", lifecycletest.Script{})
				return "1", nil
			}
			m.createPodWithContainers("a", "b")
			m.requireLogged(`A call has failed: StartContainer has returned the ID "1" of container `) // of a or b, whichever gets the ID later
		},
		"it returns an ID that is not listed": func(m *misuse) {
			m.rt.startContainer = func(pod *v1.Pod, name string) (string, error) {
				m.rt.Start(pod, name, "real-id", lifecycletest.Script{})
				return "other-id", nil
			}
			m.createPodWithContainers("a")
			wait(7 * time.Second) // the lists at 5 and 6 s lack the ID
			m.requireLogged("The runtime does not list a container and does not know its exit code " +
				"pod=default/w containerName=a containerID=other-id listedIDs=[real-id]")
			m.requireUnknownExitCode()
		},
		"it hangs": func(m *misuse) {
			m.rt.startContainer = func(*v1.Pod, string) (string, error) { m.hang(); return "", nil }
			pod := m.createPodWithContainers("a")
			wait(2*time.Minute + hangIsLogged) // the time limit of a start is 2 min
			m.requireLogged("A call has not returned pod=default/w call=StartContainer of container a after=2m5s")
			require.NoError(m, m.DeletePod(m.Context(), pod))
			wait(hangIsLogged)
			m.requireLogged("A call has not returned since its context ended pod=default/w containerName=a call=the start after=5s")
			require.ErrorContains(m, m.close(), "calls that have not returned: StartContainer of container a of default/w: ")
		},
	})
}

// Running, which lists the containers, does not do what its contract says. The log has one line about it, and the pod keeps
// running. A call that hangs is logged 5 s after its time limit of 30 s.
func TestMisuseOfRunning(t *testing.T) {
	playMisuses(t, map[string]func(m *misuse){
		"it hangs": func(m *misuse) {
			m.createPodWithContainers("a")
			m.rt.setList(func(context.Context) ([]lifecycle.Container, error) { m.hang(); return nil, nil })
			wait(time.Minute)
			m.requireLogged("A call has not returned pod=default/w call=Running after=35s")
		},
		"it fails in two ways": func(m *misuse) {
			m.createPodWithContainers("a")
			for _, text := range []string{"no bus", "no disk"} {
				m.rt.setList(func(context.Context) ([]lifecycle.Container, error) { return nil, errors.New(text) })
				wait(time.Minute)
				m.requireLogged("A call has failed: " + text + " pod=default/w call=Running")
			}
			require.Equal(m, v1.PodRunning, m.lastStatus().Phase)
		},
		"it returns only when its context ends": func(m *misuse) {
			m.createPodWithContainers("a")
			m.rt.setList(func(ctx context.Context) ([]lifecycle.Container, error) { <-ctx.Done(); return nil, ctx.Err() })
			wait(2 * time.Minute)
			m.requireLogged("A call has failed: Running has not returned within 30s: context deadline exceeded pod=default/w")
		},
		"it panics": func(m *misuse) {
			m.createPodWithContainers("a")
			m.rt.setList(func(context.Context) ([]lifecycle.Container, error) { panic("boom") })
			wait(time.Minute)
			m.requireLogged("Recovered from a panic: Running panicked: boom")
			m.rt.list.Store(nil)
			wait(time.Minute)
			m.requireLogged("A call has succeeded after earlier failures pod=default/w call=Running failures=")
		},
	})
}

// ExitCode, Exited or ContainerEnded does not do what its contract says. The log has one line about it. A call that hangs is
// logged after 5 s; one of ContainerEnded, which has a time limit of 30 s, 5 s after that.
func TestMisuseOfExitFunctions(t *testing.T) {
	playMisuses(t, map[string]func(m *misuse){
		"ExitCode hangs": func(m *misuse) {
			m.rt.exitCode = func(string) (int32, bool) { m.hang(); return 0, false }
			m.createPodWithContainers("a")
			m.rt.Exit("w/a")
			wait(2 * hangIsLogged)
			m.requireLogged("A call has not returned pod=default/w call=ExitCode after=5s")
		},
		"ExitCode panics": func(m *misuse) {
			m.rt.exitCode = func(string) (int32, bool) { panic("no code") }
			m.createPodWithContainers("a")
			m.rt.Exit("w/a")
			wait(time.Minute)
			m.requireLogged("Recovered from a panic: ExitCode panicked: no code")
			m.requireUnknownExitCode()
		},
		"Exited panics": func(m *misuse) {
			m.rt.exited = func(string) <-chan struct{} { panic("no channel") }
			m.createPodWithContainers("a")
			m.rt.Exit("w/a")
			wait(time.Minute) // the end is found by a list
			m.requireLogged("Recovered from a panic: Exited panicked: no channel")
			require.NotNil(m, m.lastStatus().ContainerStatuses[0].LastTerminationState.Terminated)
		},
		"ContainerEnded hangs": func(m *misuse) {
			m.options.ContainerEnded = func(context.Context, *v1.Pod, *v1.Container, string) error { m.hang(); return nil }
			m.createPodWithContainers("a")
			m.rt.Exit("w/a")
			wait(time.Minute)
			m.requireLogged("A call has not returned pod=default/w call=ContainerEnded of container a after=35s")
		},
		"ContainerEnded fails": func(m *misuse) {
			m.options.ContainerEnded = func(context.Context, *v1.Pod, *v1.Container, string) error { return errors.New("busy") }
			m.createPodWithContainers("a")
			m.rt.Exit("w/a")
			wait(time.Minute)
			m.requireLogged("A call has failed: busy pod=default/w call=ContainerEnded of container a")
		},
	})
}

// Options.Admit does not do what its contract says. The log has one line about it, and a pod that was not admitted fails.
func TestMisuseOfAdmit(t *testing.T) {
	playMisuses(t, map[string]func(m *misuse){
		"it refuses without a reason": func(m *misuse) {
			m.options.Admit = func(*v1.Pod) shutdown.Admission { return shutdown.Admission{} }
			m.createPodWithContainers("a")
			m.requireLogged("Options.Admit has refused the pod without a reason pod=default/w")
			require.Equal(m, "Pod was rejected: Options.Admit has refused the pod without a reason", m.lastStatus().Message)
		},
		"it panics": func(m *misuse) {
			m.options.Admit = func(*v1.Pod) shutdown.Admission { panic("no manager") }
			m.createPodWithContainers("a")
			m.requireLogged("Recovered from a panic: Admit panicked: no manager")
			require.Equal(m, v1.PodFailed, m.lastStatus().Phase)
			require.Equal(m, "UnexpectedAdmissionError", m.lastStatus().Reason)
		},
		"it hangs": func(m *misuse) {
			m.options.Admit = func(*v1.Pod) shutdown.Admission { m.hang(); return shutdown.Admission{Admit: true} }
			m.createPodWithContainers("a")
			wait(hangIsLogged)
			m.requireLogged("A call has not returned pod=default/w call=Admit after=5s")
		},
	})
}

// Options.Status or the callback of NotifyPods hangs or panics. The log has a line about it. A call that hangs is logged 5 s after
// it began, also while Close waits for it.
func TestMisuseOfStatusAndNotifyPods(t *testing.T) {
	playMisuses(t, map[string]func(m *misuse){
		"the callback of NotifyPods hangs": func(m *misuse) {
			m.makeProvider()
			m.NotifyPods(m.Context(), func(*v1.Pod) { m.hang() })
			m.createPodWithContainers("a")
			wait(hangIsLogged)
			m.requireLogged("A call has not returned pod=default/w call=the callback of NotifyPods after=5s")
			require.ErrorContains(m, m.close(), "calls that have not returned: the callback of NotifyPods of default/w: ")
		},
		"Status panics": func(m *misuse) {
			m.options.Status = func(*v1.Pod) { panic("no IP") }
			pod := m.createPodWithContainers("a")
			require.NoError(m, m.DeletePod(m.Context(), pod))
			wait(time.Minute)
			m.requireLoggedAtMost("Recovered from a panic: Status panicked: no IP", 3) // concurrent calls may each log it
			require.Equal(m, v1.PodSucceeded, m.lastStatus().Phase)
		},
		"Status hangs while Close waits": func(m *misuse) {
			m.options.Status = func(*v1.Pod) { m.hang() }
			m.createPodWithContainers("a")
			ended := make(chan error, 1)
			go func() { ended <- m.Close(m.Context()) }()
			wait(hangIsLogged)
			m.requireLogged("Provider.Close waits for calls that have not returned calls=[Status of default/w")
			close(m.release)
			require.NoError(m, <-ended)
		},
	})
}

// A PodRuntime does not do what its contract says. The log has one line about it. A call that hangs is logged 5 s after its time
// limit, which is 30 s for Statuses and 2 min for Create.
func TestMisuseOfAPodRuntime(t *testing.T) {
	playMisuses(t, map[string]func(m *misuse){
		"Statuses hangs": func(m *misuse) {
			m.options.Runtime, m.options.Pods = nil, m.pods
			m.pods.statuses = func(context.Context) { m.hang() }
			m.createPodWithContainers("a")
			wait(time.Minute)
			m.requireLogged("A call has not returned pod=/ call=Statuses after=35s")
			require.ErrorContains(m, m.close(), "calls that have not returned: a call of Statuses: ")
		},
		"Statuses lists a pod without a UID or a nil pod": func(m *misuse) {
			m.options.Runtime, m.options.Pods = nil, m.pods
			m.createPodWithContainers("a")
			wait(hangIsLogged)
			for text, wrong := range map[string]*v1.Pod{
				"the list of Statuses: pod default/x: UID: must be set": podInDefault("x", ""),
				"the list of Statuses: pod 1 is nil":                    nil,
			} {
				m.pods.alsoList(wrong)
				wait(time.Minute)
				m.requireLogged(text)
			}
			require.Equal(m, v1.PodRunning, m.lastStatus().Phase)
		},
		"the pod still runs after Stop has returned": func(m *misuse) {
			m.options.Runtime, m.options.Pods = nil, m.pods
			pod := m.createPodWithContainers("a")
			require.NoError(m, m.DeletePod(m.Context(), pod))
			wait(time.Minute)
			// The grace period is 5 s. The list that DeletePod requests begins 1 s later, because lists are 1 s apart, so the
			// timeout of StopPod is the 4 s that are left. StopPod may return up to 10 s after that: the default of
			// StopTimeoutSlack is 5 s, and a PollInterval, also 5 s, is added. 4 s + 10 s = 14 s.
			m.requireLogged("Failed to stop container: StopPod with timeout 4 has not returned after 14s")
		},
		"Create hangs": func(m *misuse) {
			m.options.Runtime, m.options.Pods = nil, m.pods
			m.pods.create = func(context.Context) { m.hang() }
			m.createPodWithContainers("a")
			wait(3 * time.Minute)
			m.requireLogged("A call has not returned pod=default/w call=Create after=2m5s")
		},
	})
}

// The error of New names all invalid options of the provider. If there are none, it names those of Options.Terminator.
func TestNewNamesAllInvalidOptions(t *testing.T) {
	rt := newScriptedRuntime()
	for name, test := range map[string]struct {
		opts virtualkubelet.Options
		want string
	}{
		"neither Runtime nor Pods": {want: "failed to make a provider: Runtime or Pods: exactly one must be set"},
		"a nil pointer and a negative PollInterval": {
			opts: virtualkubelet.Options{
				Runtime: (*misusedRuntime)(nil), PollInterval: -1,
			},
			want: `failed to make a provider: Runtime is a nil *virtualkubelet_test.misusedRuntime: leave it out or set a value
PollInterval: must not be negative, is -1ns`,
		},
		"an option of the terminator": {
			opts: virtualkubelet.Options{Runtime: rt, Terminator: lifecycle.TerminatorOptions{StopTimeoutSlack: -1}},
			want: "failed to make a provider: failed to create terminator: StopTimeoutSlack: must not be negative, is -1ns",
		},
		"a PollInterval of 5, meant as seconds": {
			opts: virtualkubelet.Options{Runtime: rt, PollInterval: 5},
			want: "failed to make a provider: PollInterval: must be at least 1ms, is 5ns",
		},
		"fields of Terminator that the provider sets itself": { // one error stands for Terminator.Runtime and Terminator.Pods
			opts: virtualkubelet.Options{Runtime: rt, Terminator: lifecycle.TerminatorOptions{Runtime: rt, Exits: rt}},
			want: `failed to make a provider: Terminator.Runtime and Terminator.Pods: must not be set, use Runtime or Pods
Terminator.Exits: must not be set, use Runtime`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := virtualkubelet.New(test.opts)
			require.EqualError(t, err, test.want)
		})
	}
}

// errorsOfPodMethods calls every method that takes a pod, and returns the errors by the names of the methods.
func errorsOfPodMethods(t *testing.T, p *virtualkubelet.Provider, pod *v1.Pod) map[string]error {
	t.Helper()
	ctx := t.Context()
	_, killErr := p.KillPod(ctx, pod, shutdown.KillRequest{})
	p.StatusChanged(pod)
	return map[string]error{
		"CreatePod": p.CreatePod(ctx, pod), "UpdatePod": p.UpdatePod(ctx, pod), "DeletePod": p.DeletePod(ctx, pod),
		"KillPod": killErr, "Adopt": p.Adopt(ctx, virtualkubelet.Adopted{Pod: pod}),
	}
}

// A Provider that was not made with New returns an error from each method, instead of a panic.
func TestMethodsOfTheZeroProviderFail(t *testing.T) {
	for _, p := range []*virtualkubelet.Provider{{}, nil} {
		errs := errorsOfPodMethods(t, p, podOf(container("app")))
		_, errs["GetPod"] = p.GetPod(t.Context(), "ns", "pod")
		_, errs["GetPodStatus"] = p.GetPodStatus(t.Context(), "ns", "pod")
		_, errs["GetPods"] = p.GetPods(t.Context())
		_, errs["Pods"] = p.Pods(t.Context())
		errs["Close"] = p.Close(t.Context())
		p.NotifyPods(t.Context(), func(*v1.Pod) {})
		for method, err := range errs {
			require.EqualError(t, err, "the provider was not made with New", method)
		}
	}
}

// Every method returns an error for a nil pod and for one without UID and name, and CreatePod for a pod without containers. None
// panics.
func TestInvalidPodsAreRejected(t *testing.T) {
	inBubble(t, func(b *testbed) {
		for method, err := range errorsOfPodMethods(t, b.Provider, nil) {
			require.EqualError(b, err, "the pod is nil", method)
		}
		nameless := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a"}}}}
		for method, err := range errorsOfPodMethods(t, b.Provider, nameless) {
			require.EqualError(b, err, "the pod has neither a UID nor a name", method)
		}
		err := b.CreatePod(b.Context(), podOf())
		require.EqualError(b, err, "pod ns/pod is refused: spec.containers: must not be empty")
		require.True(b, errdefs.IsInvalidInput(err))
	})
}
