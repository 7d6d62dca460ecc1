// Package shutdowntest has a fake host, killer and reporter for tests of programs with a [shutdown.Manager].
// A test sets their behaviour and then inspects the recorded calls. In a testing/synctest bubble a shutdown
// takes no real time:
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
//		"github.com/kubegrace/kubegrace/shutdown/source"
//	)
//
//	func TestSlowPodIsKilledAtTheEndOfItsGracePeriod(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			host := &shutdowntest.Host{}
//			killer := &shutdowntest.Killer{
//				Pods: map[string]shutdowntest.Behaviour{"slow": {Takes: time.Minute}},
//			}
//			manager, err := shutdown.NewManager(shutdown.Options{
//				Config:   plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 30 * time.Second}},
//				Source:   host,
//				ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return []*v1.Pod{shutdowntest.Pod("slow", 0, 20)} }, nil),
//				Killer:   killer,
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
// # Failures
//
// A [Host] can fail Connect, Pending and Inhibit, cap the delay, lose its sessions, and change
// its pending shutdown without an event. It never shuts down, so that a test sees what would have been too
// late. [Host.Err] reports locks and sessions that were closed twice. A [Killer] can fail, hang, and ignore
// its context: end such a hang with [Killer.Release]. A [Reporter] can fail and be slow.
//
// # Concurrency
//
// All methods may be called concurrently. Everything works in a testing/synctest bubble: create the values
// inside it. After [Host.Announce], call synctest.Wait to let the manager handle the event.
//
// # Stability
//
// For tests: any release may change exported names.
package shutdowntest
