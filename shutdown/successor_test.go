//go:build unix && go1.25

package shutdown_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// atEachMessage is a log sink that calls a function for each message.
type atEachMessage func()

func (atEachMessage) Init(klog.RuntimeInfo)             {}
func (atEachMessage) Enabled(int) bool                  { return true }
func (do atEachMessage) Info(int, string, ...any)       { do() }
func (do atEachMessage) Error(error, string, ...any)    { do() }
func (do atEachMessage) WithValues(...any) klog.LogSink { return do }
func (do atEachMessage) WithName(string) klog.LogSink   { return do }

// If another shutdown is under way than the stored one, no pod is admitted at any moment, and the
// agent never publishes that the node does not shut down.
func TestNothingIsUndoneBetweenTwoShutdowns(t *testing.T) {
	inBubbleAfterCrash(t, func(t *testing.T, n *node, boot *boot) {
		n.host.SetPending(&shutdown.Event{Kind: shutdown.KindSoftReboot})
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter = flusher{reporter}
		m, err := shutdown.NewManagerOn(n.opts, boot.sinceBoot)
		require.NoError(t, err)
		var admitted atomic.Int32
		sink := atEachMessage(func() {
			if m.Admit(nil).Admit {
				admitted.Add(1)
			}
		})
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.New(sink)))
		n.m, n.stop, n.ended = m, stop, make(chan error, 1)
		go func() { n.ended <- m.Run(ctx) }()
		n.advance(3 * time.Second)
		require.Zero(t, admitted.Load())
		for _, published := range reporter.Published() {
			require.True(t, published.State.ShuttingDown)
		}
		require.Len(t, n.killer.Kills(), 1)
	})
}

// One agent has signalled a pod, the next agent does not list it any more, and both are killed.
// The final status of the pod is sent after the reboot, unless the shutdown was cancelled while
// the second agent ran.
func TestPodThatTheNextAgentDoesNotSee(t *testing.T) {
	for cancelled, want := range map[bool][]string{false: {"hangs"}, true: nil} {
		t.Run(strconv.FormatBool(cancelled), func(t *testing.T) {
			inBubbleWithState(t, list(shutdowntest.Pod("hangs", 0, 60)), func(t *testing.T, n *node, one *boot) {
				c := &cluster{away: true}
				n.opts.Reporter = c
				n.killer.Default = shutdowntest.Behaviour{Hangs: true, Deaf: true}
				n.runOnBoot(one)
				n.announce()
				n.advance(5 * time.Second)
				n.crash()

				n.setPods() // the second agent does not know of pods yet
				n.opts.LateStart = func(shutdown.Event) bool { return true }
				n.runOnBoot(one)
				if cancelled {
					n.host.Cancel()
				}
				n.advance(time.Second)
				n.crash()

				n.host.SetPending(nil)
				c.setAway(false)
				n.runOnBoot(&boot{id: "two", began: time.Now()})
				n.advance(time.Second)
				require.Equal(t, want, c.flushedPods())
				require.Len(t, n.lastReport().Pods, 1)
			})
		})
	}
}

// A pod outlives a shutdown, and the next agent of the same boot lets it run. The agent of the
// next boot does not report that the pod has ended.
func TestPodThatHasOutlivedItsShutdown(t *testing.T) {
	dir := t.TempDir()
	hangs := shutdowntest.Pod("hangs", 0, 5)
	inBubble(t, list(hangs), func(t *testing.T, n *node) {
		c := &cluster{}
		n.opts.StateDir, n.opts.Reporter = dir, c
		n.killer.Default = shutdowntest.Behaviour{Hangs: true, Deaf: true}
		one := &boot{id: "one", began: time.Now()}
		n.runOnBoot(one)
		n.announce()
		n.advance(time.Minute)
		require.NotZero(t, n.lastReport().Ended)
		c.setAway(true)
		n.crash()

		n.host.SetPending(nil) // the host has failed to shut down
		n.runOnBoot(one)
		require.True(t, n.m.Admit(hangs).Admit)
		n.advance(time.Second)
		n.crash()

		c.setAway(false)
		n.runOnBoot(&boot{id: "two", began: time.Now()})
		n.advance(time.Second)
		require.Empty(t, c.flushedPods())
		require.True(t, n.m.Admit(hangs).Admit)
	})
}

// A stored shutdown of this boot that begins later than now is from the future: the machine was
// restored from a snapshot. No pod is killed or refused because of it, whether there is a host to ask
// or not. The end of a shutdown that has begun may be as far ahead as it likes: a notice may come ten
// minutes before, and a host may have no limit.
func TestShutdownFromTheFuture(t *testing.T) {
	hour := func() (string, time.Duration, error) { return "one", time.Hour, nil }
	for began, unusable := range map[time.Duration]bool{
		time.Nanosecond:         false,
		time.Hour:               false,
		time.Hour + time.Second: true,
		1<<63 - 1:               true,
	} {
		for _, sourced := range []bool{true, false} {
			t.Run(fmt.Sprint(began, sourced), func(t *testing.T) {
				dir := t.TempDir()
				text := fmt.Sprintf(`{"version":3,"bootID":"one","t0MonotonicNanoseconds":%d,"hMonotonicNanoseconds":%d,"announcements":[{"kind":"reboot"}],"report":{"started":"2026-01-01T00:00:00Z"}}`, began, int64(math.MaxInt64))
				require.NoError(t, os.WriteFile(filepath.Join(dir, progressFile), []byte(text), 0o600))
				inBubble(t, twoPods(), func(t *testing.T, n *node) {
					n.opts.StateDir = dir
					n.host.ConnectErr = errors.New("no bus")
					if !sourced {
						n.opts.Source = nil
					}
					m, err := shutdown.NewManagerOn(n.opts, hour)
					require.NoError(t, err)
					require.Equal(t, unusable, m.Admit(nil).Admit)
					n.start(m)
					synctest.Wait()
					require.Equal(t, unusable, m.Admit(nil).Admit)
					require.Equal(t, !unusable && !sourced, len(n.killer.Kills()) > 0)
					if _, ok := m.LastReport(); unusable {
						require.False(t, ok)
					}
				})
			})
		}
	}
}

// What has gone wrong before an agent was killed is in the report of the one that goes on.
func TestErrorsOfTheAgentBefore(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.opts.Reporter = &shutdowntest.Reporter{PublishErr: func(int) error { return errors.New("no API server") }}
		n.runOnBoot(one)
		n.announce()
		n.advance(5 * time.Second)
		n.crash()

		n.opts.Reporter = nil
		n.runOnBoot(one)
		n.advance(time.Minute)
		require.Contains(t, n.lastReport().Errors[0], "no API server")
	})
}

// If boots have no ID, an agent sends only the stored final statuses of pods that are known to have
// ended, because the others may run. It refuses the ended pods from NewManager on.
func TestStatusesWhereBootsCannotBeToldApart(t *testing.T) {
	dir := t.TempDir()
	ended, hangs := shutdowntest.Pod("ended", 0, 5), shutdowntest.Pod("hangs", 0, 5)
	inBubble(t, list(ended, hangs), func(t *testing.T, n *node) {
		c := &cluster{away: true}
		n.opts.StateDir, n.opts.Reporter = dir, c
		n.killer.Pods = map[string]shutdowntest.Behaviour{"hangs": {Hangs: true, Deaf: true}}
		n.runOnBoot(&boot{id: "one", began: time.Now()})
		n.announce()
		n.advance(time.Minute)
		n.crash()

		n.host.SetPending(nil)
		m, err := shutdown.NewManagerOn(n.opts, (&boot{err: errors.ErrUnsupported}).sinceBoot)
		require.NoError(t, err)
		require.False(t, m.Admit(ended).Admit, "before Run")
		require.True(t, m.Admit(hangs).Admit)
		n.start(m)
		synctest.Wait()
		require.False(t, m.Admit(ended).Admit)
		require.True(t, m.Admit(hangs).Admit)
		c.setAway(false)
		n.advance(2 * time.Second)
		require.Equal(t, []string{"ended"}, c.flushedPods())
		require.True(t, m.Admit(ended).Admit)
	})
}
