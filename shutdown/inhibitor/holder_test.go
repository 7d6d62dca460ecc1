//go:build go1.25

package inhibitor_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/inhibitor"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// program is a program with a Holder that requests a delay of 30 s, and its fake host. Its OnShutdown takes 3 s
// unless a test changes that.
type program struct {
	*testing.T
	host    *shutdowntest.Host
	began   time.Time
	calls   []call        // of OnShutdown, in order
	takes   time.Duration // the duration of OnShutdown, unless its context ends
	ignores time.Duration // how long OnShutdown ignores its context
	log     bytes.Buffer
	stop    func() error // ends the context of Run, waits for Run, and returns its error
}

// call is a call of OnShutdown.
type call struct {
	began, ended time.Duration // after the start of the test
	cause        error         // the error of its context; nil: it returned before its context ended
}

// inBubble runs a test with a program. At the end it checks that no lock is held and none was closed twice.
func inBubble(t *testing.T, host *shutdowntest.Host, test func(*program)) {
	t.Helper()
	inBubbleWith(t, host, nil, test)
}

// inBubbleWith does what inBubble does, with a Holder that change has changed; nil: nothing is changed.
func inBubbleWith(t *testing.T, host *shutdowntest.Host, change func(*inhibitor.Holder), test func(*program)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &program{T: t, host: host, began: time.Now(), takes: 3 * time.Second}
		holder := inhibitor.Holder{Source: host, Delay: 30 * time.Second, OnShutdown: p.onShutdown}
		if change != nil {
			change(&holder)
		}
		p.stop = run(loggingTo(t, &p.log), holder)
		synctest.Wait()
		test(p)
		require.NoError(t, p.stop())
		require.Zero(t, host.Held())
		require.NoError(t, host.Err())
	})
}

// run runs a Holder. The returned function ends the context of Run, and returns the error of Run. It may be called again.
func run(ctx context.Context, holder inhibitor.Holder) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- holder.Run(ctx) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
}

// loggingTo returns a context whose logger writes to text.
func loggingTo(t *testing.T, text io.Writer) context.Context {
	return klog.NewContext(t.Context(), logr.FromSlogHandler(slog.NewTextHandler(text, nil)))
}

// onShutdown ignores its context for p.ignores. Then it works for p.takes, or until its context ends. It records the call.
func (p *program) onShutdown(ctx context.Context, _ source.Event) {
	c := call{began: time.Since(p.began)}
	<-times.After(time.Now().Add(p.ignores))
	if times.Sleep(ctx, p.takes) != nil {
		c.cause = ctx.Err()
	}
	c.ended = time.Since(p.began)
	p.calls = append(p.calls, c)
}

// waitUntil waits until the test has run for the time elapsed, and all goroutines are blocked.
func (p *program) waitUntil(elapsed time.Duration) {
	p.Helper()
	<-time.After(elapsed - time.Since(p.began))
	synctest.Wait()
}

// logLines returns the lines of the log, without their time.
func (p *program) logLines() (lines []string) {
	for line := range strings.Lines(p.log.String()) {
		_, rest, _ := strings.Cut(line, " ")
		lines = append(lines, strings.TrimSpace(rest))
	}
	return lines
}

// requireReleased requires that no lock is held, and that the last one was released when the test had run for the time in at.
func (p *program) requireReleased(at time.Duration) {
	p.Helper()
	released, isReleased := p.host.Released()
	require.True(p, isReleased, "a lock is held")
	require.Equal(p, at, released.Sub(p.began))
}

// OnShutdown takes 3 s. The lock is released when it returns, long before the host's deadline of 30 s.
func TestTheLockIsReleasedWhenOnShutdownReturns(t *testing.T) {
	inBubble(t, &shutdowntest.Host{}, func(p *program) {
		require.Equal(p, 1, p.host.Held(), "the lock is held")
		p.host.Announce(source.Event{Deadline: p.began.UTC().Add(30 * time.Second)})
		p.waitUntil(time.Minute)
		require.Equal(p, []call{{ended: 3 * time.Second}}, p.calls)
		p.requireReleased(3 * time.Second)
		require.Equal(p, []string{
			`level=INFO msg="The host shuts down, calling Holder.OnShutdown" kind=unknown deadline=2000-01-01T00:00:30Z`,
			`level=INFO msg="Holder.OnShutdown has returned, the machine may shut down" after=3s`,
		}, p.logLines())
	})
}

// The context of Run has ended before Run is called. Run returns at once, without an error, and logs why no lock was taken.
func TestRunWithAnEndedContextLogsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{T: t, host: &shutdowntest.Host{}}
		ctx, cancel := context.WithCancel(loggingTo(t, &p.log))
		cancel()
		require.NoError(t, inhibitor.Holder{Source: p.host, Delay: time.Second, OnShutdown: p.onShutdown}.Run(ctx))
		require.Equal(t, []string{`level=INFO msg="Run's context ended before the inhibitor lock was taken"`}, p.logLines())
	})
}

// OnShutdown would take an hour. The host announces that it shuts down at 30 s, so the context of OnShutdown ends at 30 s, and
// OnShutdown returns.
func TestTheContextOfOnShutdownEndsAtTheDeadline(t *testing.T) {
	inBubble(t, &shutdowntest.Host{}, func(p *program) {
		p.takes = time.Hour
		p.host.Announce(source.Event{Deadline: p.began.Add(30 * time.Second)})
		p.waitUntil(time.Minute)
		require.Equal(p, []call{{ended: 30 * time.Second, cause: context.DeadlineExceeded}}, p.calls)
	})
}

// OnShutdown takes 3 s, and the session is lost after 1 s. The lock is released when OnShutdown returns, even without a
// session. After a minute the host can be reached again. The next session reports the same shutdown, which must not call
// OnShutdown again.
func TestASessionLostDuringAShutdownDoesNotCallOnShutdownAgain(t *testing.T) {
	inBubble(t, &shutdowntest.Host{}, func(p *program) {
		p.host.Announce(source.Event{})
		p.waitUntil(time.Second)
		p.host.Script(func(h *shutdowntest.Host) { h.ConnectErr = errors.New("no bus") })
		p.host.Lose()
		p.waitUntil(time.Minute)
		require.Equal(p, []call{{ended: 3 * time.Second}}, p.calls)
		p.requireReleased(3 * time.Second)
		p.host.Script(func(h *shutdowntest.Host) { h.ConnectErr = nil })
		p.waitUntil(2 * time.Minute)
		require.Len(p, p.calls, 1, "it is the same shutdown")
		require.Zero(p, p.host.Held(), "no lock is held")
	})
}

// A shutdown is cancelled after 1 s, while OnShutdown is running. Its context ends, and the lock stays held. The next
// shutdown, at 10 s, calls OnShutdown again, which takes 3 s. Then the lock is released.
func TestACancelledShutdownKeepsTheLock(t *testing.T) {
	inBubble(t, &shutdowntest.Host{}, func(p *program) {
		p.host.Announce(source.Event{})
		p.waitUntil(time.Second)
		p.host.Cancel()
		synctest.Wait()
		require.Contains(p, p.logLines(), `level=INFO msg="The host has cancelled the shutdown"`)
		p.waitUntil(10 * time.Second)
		require.Equal(p, []call{{ended: time.Second, cause: context.Canceled}}, p.calls)
		require.Equal(p, 1, p.host.Held(), "the lock is held")
		p.host.Announce(source.Event{})
		p.waitUntil(20 * time.Second)
		require.Equal(p, call{began: 10 * time.Second, ended: 13 * time.Second}, p.calls[1])
		p.requireReleased(13 * time.Second)
	})
}

// OnShutdown takes 5 s and ignores its context. Three shutdowns are announced, and the first two are cancelled before the first call
// has returned, at 5 s. Only then is OnShutdown called again, for the third one. The lock is released when the second call returns.
func TestOnShutdownIsNotCalledConcurrently(t *testing.T) {
	var calls []time.Time // when each call began
	takes5s := func(h *inhibitor.Holder) {
		h.OnShutdown = func(context.Context, source.Event) {
			calls = append(calls, time.Now())
			<-time.After(5 * time.Second)
		}
	}
	inBubbleWith(t, &shutdowntest.Host{}, takes5s, func(p *program) {
		for range 2 {
			p.host.Announce(source.Event{})
			<-time.After(time.Second)
			p.host.Cancel()
			<-time.After(time.Second)
		}
		p.host.Announce(source.Event{}) // at 4 s
		p.waitUntil(time.Minute)
		require.Equal(p, []time.Time{p.began, p.began.Add(5 * time.Second)}, calls)
		p.requireReleased((5 + 5) * time.Second)
	})
}

// OnShutdown has returned after 3 s, and the lock is released. At 5 s the host cancels the shutdown. The Holder must
// take a new lock, since the next shutdown must be delayed too.
func TestACancellationAfterTheReleaseTakesANewLock(t *testing.T) {
	inBubble(t, &shutdowntest.Host{}, func(p *program) {
		p.host.Announce(source.Event{})
		p.waitUntil(5 * time.Second)
		require.Zero(p, p.host.Held(), "no lock is held")
		p.host.Cancel()
		p.waitUntil(6 * time.Second)
		require.Equal(p, 1, p.host.Held(), "the lock is held")
	})
}

// The host cancels a shutdown while there is no session, so that the event is lost. The next session, a second later,
// finds no pending shutdown. It takes a new lock, and the next shutdown calls OnShutdown again.
func TestACancellationBetweenSessionsIsNoticed(t *testing.T) {
	inBubble(t, &shutdowntest.Host{}, func(p *program) {
		p.host.Announce(source.Event{})
		p.waitUntil(5 * time.Second)
		p.host.SetPending(nil) // the cancellation
		p.host.Lose()
		p.waitUntil(7 * time.Second)
		require.Equal(p, 1, p.host.Held(), "the lock is held")
		p.host.Announce(source.Event{})
		p.waitUntil(20 * time.Second)
		require.Len(p, p.calls, 2)
	})
}

// A program starts during a shutdown. It calls OnShutdown at once. If the host or systemd has kept the lock of the
// previous run, that lock is held until OnShutdown returns. Otherwise the program gets none.
func TestAShutdownThatIsPendingAtTheStartCallsOnShutdown(t *testing.T) {
	for name, change := range map[string]func(*shutdowntest.Host){
		"kept by the host": func(h *shutdowntest.Host) { h.KeptLock = true },
		"kept by systemd":  func(h *shutdowntest.Host) { h.StoredLock = true },
		"no lock":          func(*shutdowntest.Host) {},
	} {
		t.Run(name, func(t *testing.T) {
			host := &shutdowntest.Host{}
			host.SetPending(&source.Event{})
			change(host)
			inBubble(t, host, func(p *program) {
				p.waitUntil(time.Minute)
				require.Equal(p, []call{{ended: 3 * time.Second}}, p.calls)
				require.Equal(p, []string{
					`level=INFO msg="The host shuts down, calling Holder.OnShutdown" kind=unknown deadline=unknown`,
					`level=INFO msg="Holder.OnShutdown has returned, the machine may shut down" after=3s`,
				}, p.logLines())
				if name == "no lock" {
					require.Zero(p, p.host.Held(), "no lock is held")
					return
				}
				p.requireReleased(3 * time.Second)
			})
		})
	}
}

// OnShutdown takes 3 s and ignores its context. The context of Run ends after 1 s. Run waits for OnShutdown.
func TestRunWaitsForOnShutdown(t *testing.T) {
	takes3s := func(h *inhibitor.Holder) {
		h.OnShutdown = func(context.Context, source.Event) { <-time.After(3 * time.Second) }
	}
	inBubbleWith(t, &shutdowntest.Host{}, takes3s, func(p *program) {
		p.host.Announce(source.Event{})
		p.waitUntil(time.Second)
		require.NoError(p, p.stop())
		require.Equal(p, 3*time.Second, time.Since(p.began))
	})
}

// The context of Run ends after 1 s, during a shutdown. The context of OnShutdown ends too, so that OnShutdown returns
// before its 3 s are over. The lock is released, and Run returns.
func TestTheEndOfRunEndsTheContextOfOnShutdown(t *testing.T) {
	inBubble(t, &shutdowntest.Host{}, func(p *program) {
		p.host.Announce(source.Event{})
		p.waitUntil(time.Second)
		require.NoError(p, p.stop())
		p.requireReleased(time.Second)
		require.Equal(p, []call{{ended: time.Second, cause: context.Canceled}}, p.calls)
	})
}

// Each OnShutdown ignores its context for 5 s. The first shutdown is cancelled, another one is announced, and then the context
// of Run ends. The second OnShutdown begins when the first has returned, at 5 s, with a context that has ended. It returns at
// 10 s, and Run waits for it.
func TestOnShutdownIsCalledEvenIfTheContextOfRunHasEnded(t *testing.T) {
	inBubble(t, &shutdowntest.Host{}, func(p *program) {
		p.ignores = 5 * time.Second
		p.host.Announce(source.Event{})
		p.waitUntil(time.Second)
		p.host.Cancel()
		p.waitUntil(2 * time.Second)
		p.host.Announce(source.Event{})
		synctest.Wait()
		require.NoError(p, p.stop())
		require.Len(p, p.calls, 2)
		require.Equal(p, call{began: 5 * time.Second, ended: 10 * time.Second, cause: context.Canceled}, p.calls[1])
		p.requireReleased(10 * time.Second)
	})
}

// failingHost is a host whose locks are released by Close, which nevertheless returns an error.
type failingHost struct{ *shutdowntest.Host }

// Connect returns a session that grants such locks.
func (h failingHost) Connect(ctx context.Context) (source.Session, error) {
	session, err := h.Host.Connect(ctx)
	return failingSession{session}, err
}

// failingSession is a session of a failingHost.
type failingSession struct{ source.Session }

// Inhibit grants a lock.
func (s failingSession) Inhibit(ctx context.Context) (io.Closer, error) {
	lock, err := s.Session.Inhibit(ctx)
	return failingLock{lock}, err
}

// failingLock is a lock of a failingSession.
type failingLock struct{ io.Closer }

// Close releases the lock, and returns an error.
func (l failingLock) Close() error { return errors.Join(l.Closer.Close(), errors.New("broken pipe")) }

// The context of Run ends, and the release of the lock fails. Run returns the error of the release, whether or not
// OnShutdown is running at that moment.
func TestRunReturnsTheErrorOfTheRelease(t *testing.T) {
	for _, isShutdown := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			host := &shutdowntest.Host{}
			stop := run(t.Context(), inhibitor.Holder{
				Source: failingHost{host}, Delay: time.Minute, OnShutdown: func(ctx context.Context, _ source.Event) { <-ctx.Done() },
			})
			synctest.Wait()
			if isShutdown {
				host.Announce(source.Event{})
				synctest.Wait()
			}
			require.ErrorContains(t, stop(), "failed to release the shutdown inhibitor: broken pipe")
		})
	}
}

// OnShutdown has returned, and the release of the lock fails. The failure is logged.
func TestAFailedReleaseIsLogged(t *testing.T) {
	host := &shutdowntest.Host{}
	inBubbleWith(t, host, func(h *inhibitor.Holder) { h.Source = failingHost{host} }, func(p *program) {
		p.host.Announce(source.Event{})
		p.waitUntil(time.Minute)
		require.Contains(p, p.log.String(), "broken pipe")
	})
}

// The context of Run ends while a slow logger writes a line. Run returns when the line is written. A logger that hangs
// delays Run by no more than a second, and the error of Run names it.
func TestRunWaitsForTheLogger(t *testing.T) {
	for _, takes := range []time.Duration{100 * time.Millisecond, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			written := 0
			logger := funcr.New(func(string, string) {
				<-time.After(takes)
				written++
			}, funcr.Options{})
			stop := run(klog.NewContext(t.Context(), logger), inhibitor.Holder{
				Source: &shutdowntest.Host{Limit: time.Second}, Delay: time.Minute, OnShutdown: func(context.Context, source.Event) {},
			}) // logs one line, because the limit is shorter than Delay
			synctest.Wait()
			stopped := time.Now()
			err := stop()
			require.Equal(t, min(takes, time.Second), time.Since(stopped))
			if takes < time.Second {
				require.NoError(t, err)
				require.Equal(t, 1, written)
			} else {
				require.EqualError(t, err, "calls that have not returned: the logger")
				<-time.After(takes) // the bubble cannot end before the logger
			}
		})
	}
}

// The Holder reads the host's limit every 10 s. It logs once that the limit was lowered to 5 s, and once that the limit
// was removed.
func TestChangesOfTheLimitAreLogged(t *testing.T) {
	inBubble(t, &shutdowntest.Host{}, func(p *program) {
		p.waitUntil(time.Second)
		require.Empty(p, p.log.String())
		p.host.Script(func(h *shutdowntest.Host) { h.Limit = 5 * time.Second })
		p.waitUntil(time.Minute)
		require.Equal(p, 1, strings.Count(p.log.String(), "delays its shutdown by 5s at most"))
		p.host.Script(func(h *shutdowntest.Host) { h.Limit = 0 }) // no limit
		p.waitUntil(2 * time.Minute)
		require.Equal(p, 1, strings.Count(p.log.String(), "The host's delay limit has changed"))
	})
}

// One error names everything that is wrong with the zero Holder. A Source that is a nil pointer counts as missing.
func TestHolderNamesEachMissingField(t *testing.T) {
	err := inhibitor.Holder{}.Run(t.Context())
	require.EqualError(t, err, "Holder.Source is required\nHolder.Delay is 0s, it must be at least 1s\nHolder.OnShutdown is required")
	err = inhibitor.Holder{Source: (*shutdowntest.Host)(nil), Delay: time.Second}.Run(t.Context())
	require.EqualError(t, err, "Holder.Source is required\nHolder.OnShutdown is required")
}

// An OnShutdown panics, or ends its goroutine as testing's FailNow does. The process lives, and the lock is released, so
// that the machine can go down. A panic is logged.
func TestAFailedOnShutdownReleasesTheLock(t *testing.T) {
	for logged, fail := range map[string]func(){
		"Holder.OnShutdown panicked: a bug": func() { panic("a bug") },
		"":                                  runtime.Goexit,
	} {
		fails := func(h *inhibitor.Holder) { h.OnShutdown = func(context.Context, source.Event) { fail() } }
		inBubbleWith(t, &shutdowntest.Host{}, fails, func(p *program) {
			p.host.Announce(source.Event{})
			synctest.Wait()
			p.requireReleased(0) // at once
			require.Contains(p, p.log.String(), logged)
		})
	}
}

// OnShutdown does not return at the end of its context, 60 s after the announcement. 5 s later that is logged, and the
// lock is still held.
func TestAnOnShutdownThatIgnoresItsContextIsLogged(t *testing.T) {
	var release chan struct{}
	hangs := func(h *inhibitor.Holder) { h.OnShutdown = func(context.Context, source.Event) { <-release } }
	inBubbleWith(t, &shutdowntest.Host{}, hangs, func(p *program) {
		release = make(chan struct{}) // inside the bubble, which cannot wait for other channels
		p.host.Announce(source.Event{Deadline: p.began.Add(time.Minute)})
		p.waitUntil(time.Minute + 6*time.Second)
		require.Contains(p, p.log.String(), "A call has not returned since its context ended")
		require.Equal(p, 1, p.host.Held(), "the lock is held")
		close(release)
	})
}
