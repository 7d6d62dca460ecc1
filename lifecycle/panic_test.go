//go:build go1.25

package lifecycle_test

import (
	"cmp"
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

// callbacksThat has a callback that panics and one that ends its goroutine.
var callbacksThat = map[string]brokenCallback{
	"panics":  func() { panic("boom") },
	"Goexits": runtime.Goexit,
}

// In each case one callback of the agent panics or ends its goroutine, whenever it is called. The termination ends nevertheless,
// and its result has the panic as an error. A list or a stop is tried until GiveUpAfter past the deadline of 10 s; the other
// callbacks delay nothing.
func TestCallbackThatPanicsOrGoexits(t *testing.T) {
	type options = *lifecycle.TerminatorOptions
	const (
		gaveUp        = 10*time.Second + lifecycle.DefaultGiveUpAfter
		gaveUpOnLists = gaveUp + 500*time.Millisecond // between lists are pauses of 0.1, 0.2, 0.4, 0.8 and then 1 s: one ends at 1.5 s + 129 s
	)
	httpGet := &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Host: "app", Port: intstr.FromInt32(80)}}
	for how, broken := range callbacksThat {
		for name, test := range map[string]struct {
			options     func(options)
			hook        *v1.LifecycleHandler // of the container; nil: none
			outcome     lifecycle.Outcome    // "": Graceful
			hookOutcome lifecycle.HookOutcome
			at          time.Duration // when the termination ends; zero: at once
		}{
			"a list":           {options: func(o options) { o.Runtime = broken }, outcome: lifecycle.OutcomeRuntimeStuck, at: gaveUpOnLists},
			"a stop":           {options: func(o options) { o.Runtime = runtimeWithStop{o.Runtime, broken.StopContainer} }, outcome: lifecycle.OutcomeRuntimeStuck, at: gaveUp},
			"an exit watcher":  {options: func(o options) { o.Exits = broken }, hook: sleepHandler(2), hookOutcome: lifecycle.HookCompleted, at: 2 * time.Second},
			"a recorder":       {options: func(o options) { o.Events = broken }},
			"a hook runner":    {options: func(o options) { o.Hooks = broken }, hook: sleepHandler(2), hookOutcome: lifecycle.HookFailed},
			"a command runner": {options: func(o options) { o.Hooks, o.Commands = nil, broken }, hook: scriptedExec(), hookOutcome: lifecycle.HookFailed},
			"OnHook": {options: func(o options) {
				o.OnHook = func(*v1.Pod, lifecycle.Container, lifecycle.HookResult) { broken() }
			}, hook: sleepHandler(2), hookOutcome: lifecycle.HookCompleted, at: 2 * time.Second},
			"an HTTP client": {options: func(o options) {
				o.Hooks = lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{HTTP: broken})
			}, hook: httpGet, hookOutcome: lifecycle.HookFailed},
		} {
			t.Run(name+" that "+how, func(t *testing.T) {
				inBubble(t, graceSeconds(10), func(b *testBed) {
					b.addMainWithHook("app", test.hook, lifecycletest.Script{})
					result, _ := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{}) // the error is also in the result
					app := result.Containers[0]
					require.Equal(b, cmp.Or(test.outcome, lifecycle.OutcomeGraceful), app.Outcome)
					require.Equal(b, test.hookOutcome, app.Hook.Outcome)
					require.Equal(b, test.at, b.elapsed())
					err := app.Err
					if test.hookOutcome == lifecycle.HookFailed {
						err = app.Hook.Err
					}
					require.Regexp(b, "(the runtime's list|StopContainer|the exit watcher|the event recorder|the hook|OnHook) (panicked: boom|ended its goroutine)", err)
				}, test.options)
			})
		}
	}
}

// A postStart hook panics or ends its goroutine, and so has failed: PostStart returns an error and kills the container.
func TestPostStartThatPanicsOrGoexits(t *testing.T) {
	for how, broken := range callbacksThat {
		t.Run(how, func(t *testing.T) {
			inBubble(t, graceSeconds(10), func(b *testBed) {
				b.addAppWithPostStart(scriptedExec(), lifecycletest.Script{})
				require.ErrorContains(b, b.PostStart(b.quietContext(), b.pod, containerNamed("app")), "the hook")
				b.requireEvents("FailedPostStartHook", "Killing")
			}, func(o *lifecycle.TerminatorOptions) { o.Hooks = broken })
		})
	}
}
