//go:build go1.25

package lifecycle_test

import (
	"context"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// brokenCallback implements all callback interfaces with a function that panics or ends its goroutine.
type brokenCallback func()

func (b brokenCallback) Running(context.Context, *v1.Pod) ([]lifecycle.Container, error) {
	b()
	return nil, nil
}

func (b brokenCallback) StopContainer(context.Context, string, int64) error { b(); return nil }

func (b brokenCallback) Exited(string) <-chan struct{} { b(); return nil }

func (b brokenCallback) Event(apiruntime.Object, string, string, string) { b() }

func (b brokenCallback) RunInContainer(context.Context, string, []string, time.Duration) ([]byte, error) {
	b()
	return nil, nil
}

func (b brokenCallback) Do(*http.Request) (*http.Response, error) { b(); return nil, nil }

func (b brokenCallback) Run(context.Context, string, *v1.Pod, *v1.Container, *v1.LifecycleHandler) (string, error) {
	b()
	return "", nil
}

// brokenCallbacks has a callback that panics and one that ends its goroutine, by the verb of the case name.
var brokenCallbacks = map[string]brokenCallback{
	"panics":  func() { panic("boom") },
	"Goexits": runtime.Goexit,
}

// In each case one callback of the agent panics or ends its goroutine, whenever it is called. The termination
// ends all the same, and its result has the panic as an error. A list or a stop that always panics is tried
// until GiveUpAfter past the deadline; the other callbacks delay nothing.
func TestCallbackThatPanicsOrGoexits(t *testing.T) {
	const (
		gaveUp        = 10*time.Second + lifecycle.DefaultGiveUpAfter // past the grace period of 10 s
		gaveUpOnLists = gaveUp + 500*time.Millisecond                 // pauses of 0.1, 0.2, 0.4, 0.8 and then 1 s: one ends at 1.5 s + 129 s
	)
	httpGet := &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Host: "app", Port: intstr.FromInt32(80)}}
	for how, broken := range brokenCallbacks {
		for name, test := range map[string]struct {
			options     func(*lifecycle.TerminatorOptions)
			hook        *v1.LifecycleHandler
			outcome     lifecycle.Outcome
			hookOutcome lifecycle.HookOutcome
			inHook      bool          // the error is the hook's, not the container's
			at          time.Duration // when the termination ends; zero: at once
		}{
			"a list":           {options: func(o *lifecycle.TerminatorOptions) { o.Runtime = broken }, outcome: lifecycle.OutcomeRuntimeStuck, at: gaveUpOnLists},
			"a stop":           {options: func(o *lifecycle.TerminatorOptions) { o.Runtime = runtimeWithStop{o.Runtime, broken.StopContainer} }, outcome: lifecycle.OutcomeRuntimeStuck, at: gaveUp},
			"an exit watcher":  {options: func(o *lifecycle.TerminatorOptions) { o.Exits = broken }, hook: sleepHandler(2), outcome: lifecycle.OutcomeGraceful, hookOutcome: lifecycle.HookCompleted, at: 2 * time.Second},
			"a recorder":       {options: func(o *lifecycle.TerminatorOptions) { o.Events = broken }, outcome: lifecycle.OutcomeGraceful},
			"a hook runner":    {options: func(o *lifecycle.TerminatorOptions) { o.Hooks = broken }, hook: sleepHandler(2), outcome: lifecycle.OutcomeGraceful, hookOutcome: lifecycle.HookFailed, inHook: true},
			"a command runner": {options: func(o *lifecycle.TerminatorOptions) { o.Hooks, o.Commands = nil, broken }, hook: scriptedExec(), outcome: lifecycle.OutcomeGraceful, hookOutcome: lifecycle.HookFailed, inHook: true},
			"OnHook": {options: func(o *lifecycle.TerminatorOptions) {
				o.OnHook = func(*v1.Pod, lifecycle.Container, lifecycle.HookResult) { broken() }
			}, hook: sleepHandler(2), outcome: lifecycle.OutcomeGraceful, hookOutcome: lifecycle.HookCompleted, at: 2 * time.Second},
			"an HTTP client": {options: func(o *lifecycle.TerminatorOptions) {
				o.Hooks = lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{HTTP: broken})
			}, hook: httpGet, outcome: lifecycle.OutcomeGraceful, hookOutcome: lifecycle.HookFailed, inHook: true},
		} {
			t.Run(name+" that "+how, func(t *testing.T) {
				inBubble(t, graceSeconds(10), func(b *testBed) {
					b.addMain("app", test.hook, lifecycletest.Script{})
					result, _ := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{}) // the error is also in the result
					app := result.Containers[0]
					require.Equal(b, test.outcome, app.Outcome)
					require.Equal(b, test.hookOutcome, app.Hook.Outcome)
					require.Equal(b, test.at, b.elapsed())
					err := app.Err
					if test.inHook {
						err = app.Hook.Err
					}
					require.Regexp(b, "(the runtime's list|StopContainer|the exit watcher|the event recorder|the hook|OnHook) (panicked: boom|ended its goroutine)", err)
				}, test.options)
			})
		}
	}
}

// A postStart hook that panics or ends its goroutine has failed: PostStart returns an error and kills the
// container.
func TestPostStartThatPanicsOrGoexits(t *testing.T) {
	for how, broken := range brokenCallbacks {
		t.Run(how, func(t *testing.T) {
			inBubble(t, graceSeconds(10), func(b *testBed) {
				b.addPostStart(scriptedExec(), lifecycletest.Script{})
				require.ErrorContains(b, b.PostStart(b.quietContext(), b.pod, containerNamed("app")), "the hook")
				b.requireEvents("FailedPostStartHook", "Killing")
			}, func(o *lifecycle.TerminatorOptions) { o.Hooks = broken })
		})
	}
}
