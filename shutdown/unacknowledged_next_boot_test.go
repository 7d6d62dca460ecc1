//go:build unix && go1.25

package shutdown_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// If the machine goes down during a shutdown, the agent of the next boot sends the final statuses
// of the signalled pods that were not acknowledged, unless the policy leaves pods as they are.
func TestStatusesThatAreLeftToTheNextBoot(t *testing.T) {
	for _, test := range []struct {
		name   string
		policy shutdown.PodPolicy
		after  time.Duration // the machine goes down
		want   []string
	}{
		{"while a pod waits for its mark", shutdown.PolicySetTerminal, 200 * time.Millisecond, []string{"hangs"}},
		{"while a pod hangs", shutdown.PolicySetTerminal, 10 * time.Second, []string{"hangs"}},
		{"while pods that are left as they are hang", shutdown.PolicyLeaveAsIs, 10 * time.Second, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			pods := list(shutdowntest.Pod("quick", 0, 60), shutdowntest.Pod("hangs", 0, 60), shutdowntest.Pod("spared", 0, 60))
			inBubble(t, pods, func(t *testing.T, n *node) {
				c := &cluster{}
				n.opts.StateDir, n.opts.Reporter = dir, hangingMarker{c}
				n.opts.Policy = func(shutdown.Kind) shutdown.PodPolicy { return test.policy }
				n.killer.Pods = map[string]shutdowntest.Behaviour{"hangs": {Hangs: true}}
				n.runOnBoot(&boot{id: "one", began: time.Now()})
				n.announce()
				n.advance(test.after)
				n.crash()
				clear(c.final)
				n.host.SetPending(nil)
				n.runOnBoot(&boot{id: "two", began: time.Now()})
				n.advance(time.Second)
				require.Equal(t, test.want, c.flushedPods())
			})
		})
	}
}
