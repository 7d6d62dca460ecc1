package process_test

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/process"
	"github.com/kubegrace/kubegrace/lifecycle"
)

const (
	obedient = "echo ready; exec sleep 1000"
	stubborn = "trap '' TERM; echo ready; exec sleep 1000"
)

// signals records the signals that a runtime sends.
type signals struct {
	mu   sync.Mutex
	sent []string
}

func (s *signals) record(_ string, signal os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, signal.String())
}

// start runs a shell script, whose first line of output must be "ready", as the process "a".
func start(t *testing.T, script string) (*process.Runtime, *signals) {
	t.Helper()
	var s signals
	r := process.New(s.record)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	line, err := r.Start(t.Context(), "a", []string{"/bin/sh", "-c", script}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "ready", line)
	require.Empty(t, r.State("a"))
	return r, &s
}

// pod returns a pod with one container.
func pod(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "server"}}}}
}

func TestAProcessIsListedUntilItHasEnded(t *testing.T) {
	r, _ := start(t, obedient)
	for name, want := range map[string][]lifecycle.Container{"a": {{Name: "server", ID: "a"}}, "b": nil} {
		running, err := r.Running(t.Context(), pod(name))
		require.NoError(t, err)
		require.Equal(t, want, running)
	}
	require.NoError(t, r.StopContainer(t.Context(), "a", 60))
	running, err := r.Running(t.Context(), pod("a"))
	require.NoError(t, err)
	require.Empty(t, running)
}

func TestStopEndsWithTheProcess(t *testing.T) {
	r, s := start(t, obedient)
	require.NoError(t, r.StopContainer(t.Context(), "a", 60))
	<-r.Exited("a")
	require.Equal(t, "signal: terminated", r.State("a"))
	require.NoError(t, r.StopContainer(t.Context(), "a", 60), "the process has ended before")
	require.Equal(t, []string{"terminated"}, s.sent)
}

func TestStopKillsWhenItsTimeIsOver(t *testing.T) {
	r, s := start(t, stubborn)
	stopped := time.Now()
	require.NoError(t, r.StopContainer(t.Context(), "a", 1))
	require.GreaterOrEqual(t, time.Since(stopped), time.Second)
	require.Equal(t, "signal: killed", r.State("a"))
	require.Equal(t, []string{"terminated", "killed"}, s.sent)
}

func TestAStopWithoutTimeOvertakesOneThatWaits(t *testing.T) {
	r, s := start(t, stubborn)
	first := make(chan error, 1)
	go func() { first <- r.StopContainer(t.Context(), "a", 600) }()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.sent) == 1
	}, time.Minute, time.Millisecond)
	require.NoError(t, r.StopContainer(t.Context(), "a", 0))
	require.NoError(t, <-first)
	require.Equal(t, []string{"terminated", "killed"}, s.sent)
}

func TestStopEndsWithItsContext(t *testing.T) {
	r, _ := start(t, stubborn)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the agent stops")
	cancel(reason)
	require.ErrorIs(t, r.StopContainer(ctx, "a", 600), reason)
	require.Empty(t, r.State("a"), "the process keeps running")
}

func TestUnknownProcess(t *testing.T) {
	r := process.New(nil)
	require.ErrorIs(t, r.StopContainer(t.Context(), "b", 1), lifecycle.ErrContainerNotFound)
	<-r.Exited("b")
	require.Empty(t, r.State("b"))
	require.NoError(t, r.Close())
}

func TestStartFailures(t *testing.T) {
	r := process.New(nil)
	_, err := r.Start(t.Context(), "a", []string{"/no/such/program"}, io.Discard)
	require.ErrorContains(t, err, "failed to start a")
	_, err = r.Start(t.Context(), "b", []string{"/bin/sh", "-c", "exit 3"}, io.Discard)
	require.ErrorContains(t, err, "b has ended before it was ready: exit status 3")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = r.Start(ctx, "c", []string{"/bin/sh", "-c", "exec sleep 1000"}, io.Discard)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, "signal: killed", r.State("c"), "the process is killed when its start fails")
	require.NoError(t, r.Close())
}

func TestCloseKillsRunningProcesses(t *testing.T) {
	r, _ := start(t, stubborn)
	require.NoError(t, r.Close())
	require.Equal(t, "signal: killed", r.State("a"))
}
