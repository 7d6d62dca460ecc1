//go:build go1.25

package shutdown_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// logLines is a logger that keeps the lines that are logged at the default verbosity.
type logLines struct{ klog.Logger }

// newLogLines returns an empty log.
func newLogLines() logLines {
	return logLines{ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.Verbosity(0), ktesting.BufferLogs(true)))}
}

// all returns all lines. The manager writes lines in a goroutine of its own, so all first waits until the bubble is idle.
func (l logLines) all() []ktesting.LogEntry {
	synctest.Wait()
	return l.GetSink().(ktesting.Underlier).GetBuffer().Data()
}

// matching returns the lines that match.
func (l logLines) matching(match func(ktesting.LogEntry) bool) (found []ktesting.LogEntry) {
	for _, line := range l.all() {
		if match(line) {
			found = append(found, line)
		}
	}
	return found
}

// about returns the lines that have this value, under any key or as the text of their error.
func (l logLines) about(value string) []ktesting.LogEntry {
	return l.matching(func(line ktesting.LogEntry) bool {
		return slices.ContainsFunc(append(valuesOf(line), line.Err), func(v any) bool { return fmt.Sprint(v) == value })
	})
}

// valuesOf returns the keys and values of a line.
func valuesOf(line ktesting.LogEntry) []any {
	return slices.Concat(line.WithKVList, line.ParameterKVList)
}

// errors returns the lines that are errors.
func (l logLines) errors() []ktesting.LogEntry {
	return l.matching(func(line ktesting.LogEntry) bool { return line.Type == ktesting.LogError })
}

// valuesWith returns the values of the first line that has a key, by key; nil if there is no such line.
func (l logLines) valuesWith(key string) map[string]any {
	for _, line := range l.all() {
		values := map[string]any{}
		for pair := range slices.Chunk(valuesOf(line), 2) {
			values[fmt.Sprint(pair[0])] = pair[1]
		}
		if _, has := values[key]; has {
			return values
		}
	}
	return nil
}

// A drain logs one line when it begins and one when it ends, and no error if nothing fails.
func TestADrainLogsItsBeginningAndItsEnd(t *testing.T) {
	inBubble(t, webAndEtcd(), func(t *testing.T, n *node) {
		n.opts.ListPods = n.podsNotEnded // so that no line says that an ended pod is still listed
		n.killer.Default = shutdowntest.Behaviour{Takes: 5 * time.Second}
		n.run()
		require.Empty(t, n.log.all(), "no line before the drain")

		n.host.Announce(source.Event{Kind: source.KindReboot, Origin: "logind"})
		n.advance(time.Second)
		require.Len(t, n.log.all(), 1, "the beginning")
		require.Len(t, n.log.about("logind"), 1, "it names the origin of the announcement")

		n.advance(time.Minute)
		require.Len(t, n.log.all(), 2, "the end too")
		require.Empty(t, n.log.errors())
	})
}

// The logger blocks, because nobody reads what it writes, from the start of Run or from the announcement on. The pod is
// killed at once all the same, and the lock is released as soon as the pod has ended. The error of Run names the logger.
func TestALoggerThatBlocksDelaysNoDrain(t *testing.T) {
	for name, blocksAtStart := range map[string]bool{"from the start": true, "from the announcement": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t, list(shutdowntest.Pod("web", regularPriority, 30)))
				var isBlocked atomic.Bool
				released := make(chan struct{})
				n.log.Logger = funcr.New(func(string, string) {
					if isBlocked.Load() {
						<-released
					}
				}, funcr.Options{Verbosity: 1})
				n.killer.Default = shutdowntest.Behaviour{Takes: 3 * time.Second}
				isBlocked.Store(blocksAtStart)
				n.run()
				isBlocked.Store(true)
				began := time.Now()
				n.announce()
				n.advance(time.Minute)
				require.Zero(t, n.killedAfter("web", began))
				require.Equal(t, 3*time.Second, n.releasedAfter(began))
				require.EqualError(t, n.stopRun(), "calls that have not returned: the logger")
				close(released)
			})
		})
	}
}

// web needs an hour, so it is killed at the end of its grace period, which is logged. etcd ends gracefully, which is not
// logged.
func TestAnOutcomeOtherThanGracefulIsLogged(t *testing.T) {
	inBubble(t, webAndEtcd(), func(t *testing.T, n *node) {
		n.run()
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Second}
		n.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Takes: time.Hour}}
		n.announce()
		n.advance(time.Minute)
		require.Len(t, n.log.about("GraceExceeded"), 1)
		require.Empty(t, n.log.about("Graceful"))
	})
}

// A killer that finds nothing to stop of a running pod may look for the wrong pod: that is logged. If the pod has ended, the
// killer rightly finds nothing, and that is not logged.
func TestAKillerThatFindsNothingOfARunningPodIsLogged(t *testing.T) {
	inBubble(t, webAndEtcd(), func(t *testing.T, n *node) {
		n.opts.ListPods = func(context.Context) ([]*v1.Pod, error) {
			ended := shutdowntest.Pod("ended", regularPriority, 30)
			ended.Status.Phase = v1.PodSucceeded
			return []*v1.Pod{shutdowntest.Pod("web", regularPriority, 30), ended}, nil
		}
		n.opts.Killer = shutdown.PodKillerFunc(func(context.Context, *v1.Pod, shutdown.KillRequest) (shutdown.KillResult, error) {
			return shutdown.KillResult{Outcome: "NotFound"}, nil
		})
		n.run()
		n.announce()
		n.advance(time.Minute)
		require.Len(t, n.lastReport().Pods, 2, "the killer has found nothing of both")
		require.Len(t, n.log.about("NotFound"), 1)
		require.Contains(t, valuesOf(n.log.about("NotFound")[0]), klog.KRef("default", "web"), "the running pod")
	})
}

// Without a source one log line says so.
func TestAMissingSourceIsLogged(t *testing.T) {
	inBubble(t, noPods(), func(t *testing.T, n *node) {
		n.opts.Source = nil
		n.run()
		require.Len(t, n.log.about("Options.Source is not set"), 1)
	})
}

// A repeated failure is logged once, as an error.
func TestFailuresAreLoggedOnce(t *testing.T) {
	for name, fail := range map[string]func(n *node){
		"the killer gives up": func(n *node) { n.killer.Default = shutdowntest.Behaviour{Err: shutdown.ErrNoRetry} },
		"the killer fails":    func(n *node) { n.killer.Default = shutdowntest.Behaviour{Err: errors.New("no runtime")} },
		"publishing fails three times": func(n *node) {
			n.opts.Reporter = &flakyPublisher{fails: 3}
		},
		"the host grants too little": func(n *node) { n.host.Limit = time.Second },
		"the list fails": func(n *node) {
			n.opts.ListPods = func(context.Context) ([]*v1.Pod, error) { return nil, errors.New("no cache") }
		},
	} {
		subtestInBubble(t, name, list(shutdowntest.Pod("web", regularPriority, 5)), func(t *testing.T, n *node) {
			fail(n)
			n.run()
			n.advance(time.Second)
			n.announce()
			n.advance(time.Minute)
			require.Len(t, n.log.errors(), 1)
		})
	}
}

// Repeated panics of ListPods are logged with their stack once. The report has one line.
func TestAPanicOfListPodsIsLoggedOnce(t *testing.T) {
	inBubble(t, noPods(), func(t *testing.T, n *node) {
		var calls atomic.Int32
		n.opts.ListPods = func(context.Context) ([]*v1.Pod, error) { calls.Add(1); panic("a nil cache") }
		n.run()
		n.announce()
		n.advance(5 * time.Second)
		require.Greater(t, calls.Load(), int32(5), "the list is read again and again")
		require.Len(t, n.log.about("Options.ListPods"), 1)
		n.advance(time.Minute)
		require.Equal(t, 1, strings.Count(strings.Join(n.lastReport().Errors, "\n"), "a nil cache"))
	})
}

// The killer hangs, which is logged once, 5 s after the grace period of 5 s: not yet at 9 s, but at 11 s. Any other call is
// logged when it has taken 5 s. Here that is the list after the kill, which takes 20 s.
func TestAHangingCallIsLoggedOnce(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", regularPriority, 5)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Hangs: true, IgnoresContext: true}
		n.opts.ListPods = func(_ context.Context) ([]*v1.Pod, error) {
			if len(n.killer.Kills()) > 0 {
				<-time.After(20 * time.Second)
			}
			return n.currentPods(), nil
		}
		n.run()
		n.announce()
		n.advance(9 * time.Second)
		require.Empty(t, n.log.about("Options.Killer for pod default/web"), "9 s are within 5 s + 5 s")
		n.advance(2 * time.Second)
		require.Len(t, n.log.about("Options.Killer for pod default/web"), 1)
		n.advance(time.Minute)
		require.Len(t, n.log.about("Options.Killer for pod default/web"), 1)
		require.Len(t, n.log.about("Options.ListPods"), 1)
	})
}

// Trigger announces a shutdown whose deadline has passed. The pods are killed without any time. Therefore an error is logged,
// which names the origin of the event.
func TestADeadlineThatHasPassedIsLogged(t *testing.T) {
	inBubble(t, webAndEtcd(), func(t *testing.T, n *node) {
		n.run()
		require.NoError(t, n.m.Trigger(source.Event{Origin: "ups", Deadline: time.Now().Add(-time.Second)}))
		n.advance(time.Minute)
		require.Len(t, n.log.matching(func(l ktesting.LogEntry) bool {
			return l.Type == ktesting.LogError && strings.Contains(l.Message, `"ups"`)
		}), 1)
		require.Len(t, n.killer.Kills(), 2)
	})
}
