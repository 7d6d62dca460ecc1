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

// neverReturning implements all interfaces of the embedder with a function that panics or ends
// its goroutine.
type neverReturning func()

func (b neverReturning) Running(context.Context, *v1.Pod) ([]lifecycle.Container, error) {
	b()
	return nil, nil
}

func (b neverReturning) StopContainer(context.Context, string, int64) error { b(); return nil }

func (b neverReturning) Exited(string) <-chan struct{} { b(); return nil }

func (b neverReturning) Event(apiruntime.Object, string, string, string) { b() }

func (b neverReturning) RunInContainer(context.Context, string, []string, time.Duration) ([]byte, error) {
	b()
	return nil, nil
}

func (b neverReturning) Do(*http.Request) (*http.Response, error) { b(); return nil, nil }

func (b neverReturning) Run(context.Context, string, *v1.Pod, *v1.Container, *v1.LifecycleHandler) (string, error) {
	b()
	return "", nil
}

// stopsBy is a runtime whose StopContainer is another one's.
type stopsBy struct {
	lifecycle.Runtime

	stopper interface {
		StopContainer(ctx context.Context, id string, seconds int64) error
	}
}

func (s *stopsBy) StopContainer(ctx context.Context, id string, seconds int64) error {
	return s.stopper.StopContainer(ctx, id, seconds)
}

// waysToBreak has a panic and runtime.Goexit.
var waysToBreak = map[string]neverReturning{
	"panics":  func() { panic("boom") },
	"Goexits": runtime.Goexit,
}

// If code of the embedder does not return, the termination ends all the same, and its result
// has the error.
func TestCodeThatDoesNotReturn(t *testing.T) {
	httpGet := &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Host: "app", Port: intstr.FromInt32(80)}}
	for how, code := range waysToBreak {
		for name, test := range map[string]struct {
			options func(*lifecycle.TerminatorOptions)
			hook    *v1.LifecycleHandler
			outcome lifecycle.Outcome
			hooked  lifecycle.HookOutcome
			inHook  bool
			at      time.Duration
		}{
			"a list":           {options: func(o *lifecycle.TerminatorOptions) { o.Runtime = code }, outcome: lifecycle.OutcomeRuntimeStuck, at: 130500 * time.Millisecond},
			"a stop":           {options: func(o *lifecycle.TerminatorOptions) { o.Runtime = &stopsBy{o.Runtime, code} }, outcome: lifecycle.OutcomeRuntimeStuck, at: 130 * time.Second},
			"an exit watcher":  {options: func(o *lifecycle.TerminatorOptions) { o.Exits = code }, hook: sleep(2), outcome: lifecycle.OutcomeGraceful, hooked: lifecycle.HookCompleted, at: 2 * time.Second},
			"a recorder":       {options: func(o *lifecycle.TerminatorOptions) { o.Events = code }, outcome: lifecycle.OutcomeGraceful},
			"a hook runner":    {options: func(o *lifecycle.TerminatorOptions) { o.Hooks = code }, hook: sleep(2), outcome: lifecycle.OutcomeGraceful, hooked: lifecycle.HookFailed, inHook: true},
			"a command runner": {options: func(o *lifecycle.TerminatorOptions) { o.Hooks, o.Commands = nil, code }, hook: exec(), outcome: lifecycle.OutcomeGraceful, hooked: lifecycle.HookFailed, inHook: true},
			"an HTTP client": {options: func(o *lifecycle.TerminatorOptions) {
				o.Hooks = lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{HTTP: code})
			}, hook: httpGet, outcome: lifecycle.OutcomeGraceful, hooked: lifecycle.HookFailed, inHook: true},
		} {
			t.Run(name+" that "+how, func(t *testing.T) {
				inBubble(t, 10, func(b *bed) {
					b.addMain("app", test.hook, lifecycletest.Script{})
					result, _ := b.KillPod(b.silentContext(), b.pod, lifecycle.Request{}) // the result has the error
					app := result.Containers[0]
					require.Equal(b, test.outcome, app.Outcome)
					require.Equal(b, test.hooked, app.Hook.Outcome)
					require.Equal(b, test.at, b.at())
					err := app.Err
					if test.inHook {
						err = app.Hook.Err
					}
					require.Regexp(b, "(the runtime's list|StopContainer|the exit watcher|the event recorder|the hook) (panicked: boom|ended its goroutine)", err)
				}, test.options)
			})
		}
	}
}

func TestAPostStartThatDoesNotReturn(t *testing.T) {
	for how, code := range waysToBreak {
		t.Run(how, func(t *testing.T) {
			inBubble(t, 10, func(b *bed) {
				b.addPostStart(exec(), lifecycletest.Script{})
				require.ErrorContains(b, b.PostStart(b.silentContext(), b.pod, named("app")), "the hook")
				b.requireEvents("FailedPostStartHook", "Killing")
			}, func(o *lifecycle.TerminatorOptions) { o.Hooks = code })
		})
	}
}
