// Package shutdowntest has a host, a killer and a reporter for the tests of a program that
// embeds a [shutdown.Manager]. A test sets what they do and then asks what was done to them.
// In a bubble of testing/synctest a shutdown of minutes takes no time:
//
//	package agent_test
//
//	import (
//		"testing"
//		"testing/synctest"
//		"time"
//
//		"github.com/stretchr/testify/require"
//		v1 "k8s.io/api/core/v1"
//		metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
//
//		"github.com/kubegrace/kubegrace/shutdown"
//		"github.com/kubegrace/kubegrace/shutdown/plan"
//		"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
//	)
//
//	func TestSlowPodIsKilledAtTheEndOfItsGracePeriod(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			host := &shutdowntest.Host{}
//			killer := &shutdowntest.Killer{
//				Pods: map[string]shutdowntest.Behaviour{"slow": {Takes: time.Minute}},
//			}
//			manager, err := shutdown.NewManager(shutdown.Options{
//				Config: plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 30 * time.Second}},
//				Source: host,
//				ListPods:   shutdown.ListPodsFunc(func() []*v1.Pod { return []*v1.Pod{shutdowntest.Pod("slow", 0, 20)} }, nil),
//				Killer: killer,
//			})
//			require.NoError(t, err)
//			go manager.Run(t.Context())
//			<-manager.Ready()
//
//			start := time.Now()
//			host.Announce(source.Event{Kind: source.KindReboot})
//			<-time.After(time.Minute)
//
//			kill, found := killer.Kill("slow")
//			require.True(t, found)
//			require.Equal(t, 20*time.Second, kill.Ended.Sub(start))
//			released, ok := host.Released()
//			require.True(t, ok)
//			require.Equal(t, kill.Ended, released)
//			require.NoError(t, host.Err())
//		})
//	}
//
// # Concurrency properties
//
// All methods may be called by several goroutines. No mutex is held while a call waits, and
// all waits are for timers and channels, so that everything works in a bubble of
// testing/synctest; make the values inside it. When [Host.Announce] returns, the event is in
// the channel of the session: call synctest.Wait to let the manager handle it.
//
// # Failure modes
//
// A [Host] can refuse a connection or a lock, answer late, grant less delay than
// asked for, lose its sessions, and change its pending shutdown without an event. [Host.Err]
// reports locks and sessions that were closed twice. A [Killer] can fail, hang, and ignore its
// context; a test has to end such a hang with [Killer.Release]. A [Reporter] can be slow and
// refuse.
//
// A Host does not go down, neither when its lock is released nor when its limit is over. So a
// test can see what would have come too late.
//
// # Testing
//
// The tests of package shutdown use this package.
//
// # Stability
//
// For tests: what is exported may change in a patch release, and a program needs none of it.
package shutdowntest
