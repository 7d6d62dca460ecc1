//go:build go1.25

package podkiller_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// lines is a klog sink that sends each message, with the values of an info message, to a channel.
type lines chan []any

// The methods of klog.LogSink.
func (lines) Init(klog.RuntimeInfo)                    {}
func (lines) Enabled(int) bool                         { return true }
func (l lines) Info(_ int, text string, values ...any) { l <- append([]any{text}, values...) }
func (l lines) Error(_ error, text string, _ ...any)   { l <- []any{text} }
func (l lines) WithValues(...any) klog.LogSink         { return l }
func (l lines) WithName(string) klog.LogSink           { return l }

// Each case is a mistake of a caller. It must lead to an error or a log line that names the mistake, rather than to a panic or
// a silent hang. In the last case the kill does not end: Wait logs that after 5 s.
func TestMistakesOfTheCallerAreNamed(t *testing.T) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	for name, do := range map[string]func(t *testing.T){
		"a zero Terminator": func(t *testing.T) {
			_, err := podkiller.New(&lifecycle.Terminator{}, podkiller.Options{}).KillPod(t.Context(), pod, shutdown.KillRequest{})
			require.EqualError(t, err, "the Terminator was not made with NewTerminator")
		},
		"a closed Terminator": func(t *testing.T) {
			terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: lifecycletest.NewRuntime()})
			require.NoError(t, err)
			require.NoError(t, terminator.Close(t.Context()))
			_, err = podkiller.New(terminator, podkiller.Options{}).KillPod(t.Context(), pod, shutdown.KillRequest{})
			require.ErrorIs(t, err, lifecycle.ErrClosed)
			require.ErrorIs(t, err, shutdown.ErrNoRetry, "no later kill can succeed")
		},
		"no Terminator": func(t *testing.T) {
			_, err := shutdown.NewManager(shutdown.Options{
				ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return nil }, nil), Killer: podkiller.New(nil, podkiller.Options{}),
			})
			require.ErrorContains(t, err, "Killer")
		},
		"no killer": func(t *testing.T) {
			for _, killer := range []*podkiller.TimedKiller{{}, podkiller.Timed(nil, nil), podkiller.Timed(shutdown.PodKillerFunc(nil), nil)} {
				_, err := killer.KillPod(t.Context(), pod, podkiller.HardEviction("low"))
				require.EqualError(t, err, "the killer of a timed killer is nil")
			}
		},
		"no pod": func(t *testing.T) {
			_, err := podkiller.Timed(&shutdowntest.Killer{}, nil).KillPod(t.Context(), nil, podkiller.HardEviction("low"))
			require.EqualError(t, err, "the pod is nil")
			terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: lifecycletest.NewRuntime()})
			require.NoError(t, err)
			defer func() { require.NoError(t, terminator.Close(t.Context())) }()
			_, err = podkiller.New(terminator, podkiller.Options{}).KillPod(t.Context(), nil, shutdown.KillRequest{})
			require.ErrorContains(t, err, "the pod is nil")
		},
		"a runtime that cannot list, without Containers": func(t *testing.T) {
			terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{
				Runtime: lifecycle.RuntimeFunc(func(context.Context, string, int64) error { return nil }),
			})
			require.NoError(t, err)
			defer func() { require.NoError(t, terminator.Close(t.Context())) }()
			_, err = podkiller.New(terminator, podkiller.Options{}).KillPod(t.Context(), pod, shutdown.KillRequest{})
			require.ErrorContains(t, err, "podkiller.Options.Containers must be set for a runtime that cannot list: ")
		},
		"functions that panic": func(t *testing.T) {
			terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: lifecycletest.NewRuntime()})
			require.NoError(t, err)
			defer func() { require.NoError(t, terminator.Close(t.Context())) }()
			_, err = podkiller.New(terminator, podkiller.Options{
				Containers: func(context.Context, *v1.Pod) ([]lifecycle.Container, error) { panic("boom") },
			}).KillPod(t.Context(), pod, shutdown.KillRequest{})
			require.EqualError(t, err, "failed to get the containers of pod default/web: podkiller.Options.Containers panicked: boom")
			result, err := podkiller.New(terminator, podkiller.Options{
				Status: func(context.Context, *v1.Pod) *v1.PodStatus { panic("boom") },
			}).KillPod(t.Context(), pod, shutdown.KillRequest{})
			require.EqualError(t, err, "podkiller.Options.Status panicked: boom")
			require.Equal(t, "NotFound", result.Outcome)
		},
		"Wait for a kill that does not end": func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := make(lines, 10)
				klog.SetLogger(klog.New(log))
				defer klog.SetLogger(klog.Logger{})
				release := make(chan struct{})
				timed := podkiller.Timed(shutdown.PodKillerFunc(func(context.Context, *v1.Pod, shutdown.KillRequest) (shutdown.KillResult, error) {
					<-release
					return shutdown.KillResult{}, nil
				}), nil) // nil: no events are recorded
				_, err := timed.KillPod(t.Context(), pod, shutdown.KillRequest{})
				var overdue *podkiller.OverdueError
				require.ErrorAs(t, err, &overdue)
				time.AfterFunc(6*time.Second, func() { close(release) }) // Wait logs after 5 s
				timed.Wait()
				require.Equal(t, []any{"TimedKiller.Wait waits for calls that have not returned", "calls", []string{"the killer of pod default/web"}}, <-log)
			})
		},
	} {
		t.Run(name, do)
	}
}
