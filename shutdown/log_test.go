//go:build go1.25

package shutdown_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// logLines records what is logged at the default verbosity. It implements klog.LogSink.
type logLines struct {
	mu    *sync.Mutex
	lines *[]logLine
	with  []any
}

// logLine is a line with its key-value pairs.
type logLine struct {
	isError bool
	text    string
	values  []any
}

func newLogLines() logLines { return logLines{mu: &sync.Mutex{}, lines: &[]logLine{}} }

// add records a line with the values of WithValues.
func (l logLines) add(isError bool, text string, values []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*l.lines = append(*l.lines, logLine{isError, text, slices.Concat(l.with, values)})
}

func (logLines) Init(klog.RuntimeInfo)                  {}
func (logLines) Enabled(level int) bool                 { return level == 0 }
func (l logLines) Info(_ int, text string, kv ...any)   { l.add(false, text, kv) }
func (l logLines) Error(e error, text string, v ...any) { l.add(true, text, append(v, "err", e)) }
func (l logLines) WithName(string) klog.LogSink         { return l }

func (l logLines) WithValues(values ...any) klog.LogSink {
	l.with = slices.Concat(l.with, values)
	return l
}

// all returns the lines that match.
func (l logLines) all(match func(logLine) bool) (found []logLine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range *l.lines {
		if match(line) {
			found = append(found, line)
		}
	}
	return found
}

// about returns the lines with a value.
func (l logLines) about(value string) []logLine {
	return l.all(func(line logLine) bool {
		return slices.ContainsFunc(line.values, func(v any) bool { return fmt.Sprint(v) == value })
	})
}

// errors returns the lines that are errors.
func (l logLines) errors() []logLine { return l.all(func(line logLine) bool { return line.isError }) }

// valuesWith returns the values of the first line that has a key, by key; nil if there is no such line.
func (l logLines) valuesWith(key string) map[string]any {
	for _, line := range l.all(func(logLine) bool { return true }) {
		values := map[string]any{}
		for pair := range slices.Chunk(line.values, 2) {
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
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.run()
		isAny := func(logLine) bool { return true }
		require.Empty(t, n.log.all(isAny))
		n.killer.Default = shutdowntest.Behaviour{Takes: 5 * time.Second}
		n.host.Announce(source.Event{Kind: source.KindReboot, Origin: "logind"})
		n.advance(time.Second)
		require.Len(t, n.log.all(isAny), 1)
		require.Len(t, n.log.about("logind"), 1)
		n.advance(time.Minute)
		require.Len(t, n.log.all(isAny), 2)
		require.Empty(t, n.log.errors())
	})
}

// A pod that is killed at the end of its grace period is logged; a pod that ends gracefully is not.
func TestAnOutcomeOtherThanGracefulIsLogged(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.run()
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Second}
		n.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Takes: time.Hour}}
		n.announce()
		n.advance(time.Minute)
		require.Len(t, n.log.about("GraceExceeded"), 1)
		require.Empty(t, n.log.about("Graceful"))
	})
}

// Without a source one log line says so.
func TestAMissingSourceIsLogged(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
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
		"the list fails": func(n *node) {
			n.opts.ListPods = func(context.Context) ([]*v1.Pod, error) { return nil, errors.New("no cache") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
				fail(n)
				n.run()
				n.advance(time.Second)
				n.announce()
				n.advance(time.Minute)
				require.Len(t, n.log.errors(), 1)
			})
		})
	}
}

// Repeated panics of ListPods are logged with their stack once. The report has one line.
func TestAPanicOfListPodsIsLoggedOnce(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		var calls atomic.Int32
		n.opts.ListPods = func(context.Context) ([]*v1.Pod, error) { calls.Add(1); panic("a nil cache") }
		n.run()
		n.announce()
		n.advance(5 * time.Second)
		require.Greater(t, calls.Load(), int32(5))
		require.Len(t, n.log.about("Options.ListPods"), 1)
		n.advance(time.Minute)
		require.Equal(t, 1, strings.Count(strings.Join(n.lastReport().Errors, "\n"), "a nil cache"))
	})
}

// A killer that hangs is logged once, 5 s after the grace period; any other call after 5 s.
func TestAHangingCallIsLoggedOnce(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
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
		require.Empty(t, n.log.about("Options.Killer for pod default/web"))
		n.advance(2 * time.Second)
		require.Len(t, n.log.about("Options.Killer for pod default/web"), 1)
		n.advance(time.Minute)
		require.Len(t, n.log.about("Options.Killer for pod default/web"), 1)
		require.Len(t, n.log.about("Options.ListPods"), 1)
	})
}

// A deadline that has passed is logged as an error, because the pods have no time.
func TestADeadlineThatHasPassedIsLogged(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.run()
		require.NoError(t, n.m.Trigger(source.Event{Origin: "ups", Deadline: time.Now().Add(-time.Second)}))
		n.advance(time.Minute)
		require.Len(t, n.log.all(func(l logLine) bool { return l.isError && strings.Contains(l.text, `"ups"`) }), 1)
		require.Len(t, n.killer.Kills(), 2)
	})
}
