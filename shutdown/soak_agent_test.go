//go:build go1.25

package shutdown_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
)

// Connect connects to the host of this moment.
func (s *soak) Connect(ctx context.Context) (shutdown.Session, error) {
	s.mu.Lock()
	host := s.host
	s.mu.Unlock()
	return host.Connect(ctx)
}

// StopContainer, RunInContainer and Exited call the runtime of this moment.
func (s *soak) StopContainer(ctx context.Context, id string, seconds int64) error {
	return s.runtime().StopContainer(ctx, id, seconds)
}

func (s *soak) RunInContainer(ctx context.Context, id string, cmd []string, timeout time.Duration) ([]byte, error) {
	return s.runtime().RunInContainer(ctx, id, cmd, timeout)
}

func (s *soak) Exited(id string) <-chan struct{} { return s.runtime().Exited(id) }

func (s *soak) runtime() *lifecycletest.Runtime {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rt
}

// startAgent starts an agent.
func (s *soak) startAgent() {
	t := s.t
	var err error
	s.terminator, err = lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: s, Commands: s, Exits: s})
	require.NoError(t, err)
	s.killer = s.recordKills(podkiller.New(s.terminator, podkiller.Options{Containers: s.containers, Complete: true, Status: s.status}))
	s.m, err = shutdown.NewManagerOn(shutdown.Options{
		Config:   config(30*time.Second, 10*time.Second),
		Pods:     shutdown.PodsFunc(s.listPods),
		Killer:   s.killer,
		Source:   s,
		Reporter: s.soakWorld,
		OnReport: s.onReport,
		StateDir: s.dir,
	}, s.boot.sinceBoot)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	m, ended := s.m, make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	s.endRun = func() error { stop(); return <-ended }
	<-s.m.Ready()
}

// stopAgent ends the agent and checks that it leaves neither a lock nor a goroutine.
func (s *soak) stopAgent() {
	require.NoError(s.t, s.endRun())
	require.NoError(s.t, s.terminator.Close(s.t.Context()))
	s.deletions.Wait()
	synctest.Wait()
	require.Zero(s.t, s.host.Held(), "locks after Run")
	stacks, n := goroutines()
	require.Equal(s.t, s.idleGoroutines, n, "goroutines without an agent:\n%s", stacks)
}

// goroutines returns the stacks of the goroutines in bubbles, and their number.
func goroutines() (stacks string, n int) {
	all := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(all[:runtime.Stack(all, true)]), "\n\n") {
		if head, _, _ := strings.Cut(stack, "\n"); strings.Contains(head, "synctest bubble") {
			stacks, n = stacks+stack+"\n\n", n+1
		}
	}
	return stacks, n
}

// storedWithin is how long after the end of a pod the end is in the state file at the latest.
const storedWithin = 100 * time.Millisecond

// crashAgent ends the agent like kill -9: the files are as they were before the end.
func (s *soak) crashAgent() {
	files := map[string][]byte{}
	for _, name := range []string{timesFile, progressFile} {
		data, err := os.ReadFile(filepath.Join(s.dir, name))
		if err == nil {
			files[name] = data
		}
	}
	now := time.Now()
	s.stopAgent()
	for name, data := range files {
		require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, name), data, 0o644))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pods {
		p.endUnknown = p.endUnknown || p.ended.After(now.Add(-storedWithin))
	}
}
