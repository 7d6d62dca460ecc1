package shutdown_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// Run waits ten seconds for kills that hang, whatever the number of buckets.
func TestRunWaitsOnceForAllBuckets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, list(shutdowntest.Pod("web", 0, 5), shutdowntest.Pod("db", 10, 5), shutdowntest.Pod("etcd", 20, 5)))
		n.opts.Config = config(0, 0, priorityPeriod(0, 5), priorityPeriod(10, 5), priorityPeriod(20, 5))
		n.killer.Default = shutdowntest.Behaviour{Hangs: true, Deaf: true}
		n.run()
		n.announce()
		n.advance(time.Minute)
		n.stop()
		stopped := time.Now()
		require.ErrorContains(t, <-n.ended, "Options.Killer for pod default/etcd")
		n.killer.Release()
		require.Equal(t, 10*time.Second, time.Since(stopped))
	})
}

// The error names the call that hangs and not an earlier call of the same goroutine.
func TestHangingFlushIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pods []*v1.Pod
		for _, name := range []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "late"} {
			pods = append(pods, shutdowntest.Pod(name, 0, 5))
		}
		n := newNode(t, pods)
		over := make(chan struct{})
		n.opts.Reporter = flushFunc(func(pod *v1.Pod) error {
			if pod.Name == "late" {
				<-over
				return nil
			}
			<-time.After(100 * time.Millisecond)
			return nil
		})
		n.killer.Pods = map[string]shutdowntest.Behaviour{"late": {Takes: 50 * time.Millisecond}}
		n.run()
		n.announce()
		n.advance(time.Minute)
		n.stop()
		require.ErrorContains(t, <-n.ended, "Options.Reporter.FlushPod for pod default/late")
		close(over)
	})
}

// Run waits for a call until ten seconds after the host's time, not only after the end of its context.
func TestRunWaitsUntilTheHostsTimeIsOver(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
		n.opts.OnPlan = func(context.Context, plan.Plan) { <-time.After(30 * time.Second) }
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.run()
		n.announce()
		n.advance(2 * time.Second)
		stopped := time.Now()
		n.end() // fails the test if Run names a call
		require.Equal(t, 28*time.Second, time.Since(stopped))
	})
}
