package agent_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/agent"
)

// countingRuntime counts the commands that preStop hooks run in containers.
type countingRuntime struct {
	agent.Runtime
	commands atomic.Int64
}

// RunInContainer counts a command and runs it.
func (r *countingRuntime) RunInContainer(ctx context.Context, id string, cmd []string, timeout time.Duration) ([]byte, error) {
	r.commands.Add(1)
	return r.Runtime.RunInContainer(ctx, id, cmd, timeout)
}

// The first agent ends in the middle of a drain, by two signals; the second one continues it with the same
// runtime. The hook takes 1 s. If the first agent ends after 2 s the hook has run, and the second must not run
// it again: one command. If it ends after 0.5 s the hook was cut off, and the second must run it again: two
// commands. A third agent, without a pending shutdown, must remove the files of hooks, so that the next
// shutdown runs them.
func TestAHookThatHasRunDoesNotRunAgain(t *testing.T) {
	for name, test := range map[string]struct {
		endsAfter time.Duration // from the shutdown to the end of the first agent
		commands  int64         // that both agents run
	}{
		"it has run":  {endsAfter: 2 * time.Second, commands: 1},
		"it runs yet": {endsAfter: 500 * time.Millisecond, commands: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pod := podOf("web", 0, "{execTakes: 1s, exitAfterTerm: 4s}")
				pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"flush"}}}}
				grace := int64(15)
				pod.Spec.TerminationGracePeriodSeconds = &grace
				first := newTestbed(t, pod)
				runtime := &countingRuntime{Runtime: first.opts.Runtime}
				first.opts.Runtime, first.opts.StateDir = runtime, t.TempDir()
				first.run()
				first.host.Announce(source.Event{})
				first.advance(test.endsAfter)
				first.signals <- syscall.SIGTERM
				first.signals <- syscall.SIGTERM
				require.ErrorContains(t, <-first.result, "ended the waiting")

				second := newTestbed(t)
				second.opts.Runtime, second.opts.StateDir = runtime, first.opts.StateDir
				second.host.SetPending(&source.Event{})
				second.run()
				second.advance(20 * time.Second)
				require.Equal(t, test.commands, runtime.commands.Load())
				second.signals <- syscall.SIGTERM
				require.NoError(t, <-second.result)

				folder := filepath.Join(first.opts.StateDir, "kubegrace-node_hooks")
				require.DirExists(t, folder)
				third := newTestbed(t)
				third.opts.StateDir = first.opts.StateDir
				third.run()
				require.NoDirExists(t, folder, "the files of hooks must go when the shutdown is over")
				third.signals <- syscall.SIGTERM
				require.NoError(t, <-third.result)
			})
		})
	}
}
