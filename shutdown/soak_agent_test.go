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

// Connect is the host's part of a source.
func (s *soak) Connect(ctx context.Context) (shutdown.Session, error) {
	s.mu.Lock()
	host := s.host
	s.mu.Unlock()
	return host.Connect(ctx)
}

// StopContainer, RunInContainer and Exited are the runtime's.
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

// start starts an agent.
func (s *soak) start() {
	t := s.t
	var err error
	s.terminator, err = lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: s, Commands: s, Exits: s})
	require.NoError(t, err)
	s.killer = s.soakWorld.killer(podkiller.New(s.terminator, podkiller.Options{Containers: s.containers, Status: s.status}))
	s.m, err = shutdown.NewManagerOn(shutdown.Options{
		Config:   config(30*time.Second, 10*time.Second),
		Pods:     s.list,
		Killer:   s.killer,
		Source:   s,
		Reporter: s.soakWorld,
		OnReport: s.onReport,
		StateDir: s.dir,
	}, s.boot.now)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	m, ended := s.m, make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	s.end = func() error { stop(); return <-ended }
	<-s.m.Ready()
}

// stop ends the agent. Nothing of it is left.
func (s *soak) stop() {
	require.NoError(s.t, s.end())
	require.NoError(s.t, s.terminator.Close(s.t.Context()))
	s.deletions.Wait()
	synctest.Wait()
	require.Zero(s.t, s.host.Held(), "locks after Run")
	stacks, n := goroutines()
	require.Equal(s.t, s.idle, n, "goroutines without an agent:\n%s", stacks)
}

// goroutines are the stacks of those in bubbles, and how many these are.
func goroutines() (stacks string, n int) {
	all := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(all[:runtime.Stack(all, true)]), "\n\n") {
		if head, _, _ := strings.Cut(stack, "\n"); strings.Contains(head, "synctest bubble") {
			stacks, n = stacks+stack+"\n\n", n+1
		}
	}
	return stacks, n
}

// storedWithin is how long after its end a pod is on the disk.
const storedWithin = 100 * time.Millisecond

// crash ends the agent and leaves the files as they were before.
func (s *soak) crash() {
	files := map[string][]byte{}
	for _, name := range []string{timesFile, progressFile} {
		data, err := os.ReadFile(filepath.Join(s.dir, name))
		if err == nil {
			files[name] = data
		}
	}
	now := time.Now()
	s.stop()
	for name, data := range files {
		require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, name), data, 0o644))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pods {
		p.lost = p.lost || p.ended.After(now.Add(-storedWithin))
	}
}
