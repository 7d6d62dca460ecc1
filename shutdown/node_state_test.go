//go:build go1.25

package shutdown_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The node state of a former agent is reverted even if nothing is on record, but not before it
// is known that no shutdown goes on.
func TestNodeStateIsRevertedAtTheStart(t *testing.T) {
	for _, test := range []struct {
		name   string
		script func(*node)
		want   []bool // what was published: whether the node shuts down
	}{
		{"nothing is pending", func(*node) {}, []bool{false}},
		{"no host", func(n *node) { n.opts.Source = nil }, []bool{false}},
		{"the host cannot tell", func(n *node) { n.host.PendingErr = errors.ErrUnsupported }, []bool{false}},
		{"the host is not there", func(n *node) { n.host.ConnectErr = errors.New("no bus") }, []bool{false}},
		{"a shutdown is pending", func(n *node) { n.host.SetPending(&shutdown.Event{}) }, []bool{true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, n *node) {
				reporter := &shutdowntest.Reporter{}
				n.opts.Reporter = reporter
				test.script(n)
				n.run()
				n.advance(time.Minute)
				var shuttingDown []bool
				for _, published := range reporter.Published() {
					shuttingDown = append(shuttingDown, published.State.ShuttingDown)
				}
				require.Equal(t, test.want, shuttingDown)
			})
		})
	}
}

// An agent without a host that does not get the state folder leaves the node state and the readiness of
// the pods to the agent that has it, which may drain.
func TestNodeStateOfAnAgentThatHasTheFolder(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		reporter := &shutdowntest.Reporter{}
		marked := shutdowntest.Pod("web", 0, 60)
		marked.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: v1.PodReasonTerminationByKubelet}}
		other := n.startOther(list(marked), one, func(other *node) { other.opts.Source, other.opts.Reporter = nil, reporter })
		t.Cleanup(func() { other.end() })
		n.advance(time.Second)
		n.announce()
		n.advance(time.Minute)
		require.Empty(t, reporter.Published())
		require.Empty(t, reporter.Marked())
	})
}

// The node state that a cancellation has reverted is not reverted again in the next session.
func TestNodeStateIsRevertedOnce(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter = reporter
		n.host.SetPending(&shutdown.Event{})
		n.run()
		n.advance(time.Second)
		n.host.Cancel()
		n.advance(time.Second)
		published := len(reporter.Published())
		require.False(t, reporter.Published()[published-1].State.ShuttingDown)
		n.host.Lose()
		n.advance(time.Minute)
		require.Len(t, reporter.Published(), published)
	})
}

// A call of PublishNode has time to return even if PublishTimeout is negative, so that no drain
// waits for it.
func TestPublishingThatNobodyWaitsFor(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		n.opts.Plan.PublishTimeout = -1
		server := &flakyPublisher{takes: time.Second}
		n.opts.Reporter = server
		n.run()
		n.advance(2 * time.Second)
		require.Equal(t, 1, server.done)
	})
}

// flakyPublisher is a reporter whose first calls fail, and whose later calls take some time.
type flakyPublisher struct {
	takes       time.Duration
	fails, done int
}

func (p *flakyPublisher) PublishNode(ctx context.Context, _ shutdown.NodeState) error {
	if p.fails > 0 {
		p.fails--
		return errors.New("boom")
	}
	err := waitOrCancelled(ctx, p.takes)
	if err == nil {
		p.done++
	}
	return err
}
