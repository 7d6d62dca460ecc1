//go:build go1.25

package shutdown_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/notice"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// spot is EC2's metadata service on a spot instance. Its connections are pipes.
type spot struct {
	conns  chan net.Conn
	closed chan struct{}

	mu   sync.Mutex
	when time.Time // when the instance is interrupted; zero: it is not
}

func (s *spot) Accept() (net.Conn, error) {
	select {
	case conn := <-s.conns:
		return conn, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *spot) Close() error {
	close(s.closed)
	return nil
}

func (*spot) Addr() net.Addr { return &net.UnixAddr{} }

func (s *spot) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	s.conns <- theirs
	return ours, nil
}

func (s *spot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Method == http.MethodPut:
		fmt.Fprint(w, "token")
	case s.when.IsZero():
		http.NotFound(w, r)
	default:
		fmt.Fprintf(w, `{"action": "terminate", "time": %q}`, s.when.UTC().Format(time.RFC3339))
	}
}

// interrupt has the instance be interrupted at a time, zero being never, and waits until its agent
// must know.
func (s *spot) interrupt(n *node, when time.Time) {
	s.mu.Lock()
	s.when = when
	s.mu.Unlock()
	n.advance(5 * time.Second)
}

// serveSpot serves the metadata of a spot instance until the test ends.
func serveSpot(t *testing.T) (*spot, notice.Provider) {
	t.Helper()
	s := &spot{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(s) }()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	provider := notice.EC2()
	provider.Dial = s.dial
	return s, provider
}

// watchSpot has the agent of a node hear the notices, until stop is called.
func watchSpot(t *testing.T, n *node, provider notice.Provider) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan error, 1)
	go func() { watched <- notice.Watch(ctx, provider, n.m.Trigger) }()
	synctest.Wait()
	return func() {
		cancel()
		require.NoError(t, <-watched)
	}
}

// onSpot runs a test in a bubble, on a spot instance whose agent hears its notices. Its pods use
// all of their grace.
func onSpot(t *testing.T, prepare func(n *node), test func(t *testing.T, n *node, s *spot, told *tally)) {
	t.Helper()
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		s, provider := serveSpot(t)
		told := countReports(t, n)
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		prepare(n)
		n.run()
		defer watchSpot(t, n, provider)()
		test(t, n, s, told)
	})
}

// killsSince lists the calls of the killer: whom, when, and with how many seconds.
func (n *node) killsSince(began time.Time) (all []string) {
	for _, kill := range n.killer.Kills() {
		all = append(all, fmt.Sprintf("%s %v: %d s", kill.Pod.Name, kill.Started.Sub(began), *kill.Request.GracePeriodSeconds))
	}
	return all
}

// A notice and the host announce the same end of a node, each with its deadline, in either order, and
// the drain begins at once or as late as it may. That is one shutdown with one report. The
// earlier of the two deadlines counts from the moment at which it is known.
func TestNoticeAndLogindAreOneShutdown(t *testing.T) {
	const notice, logind = "EC2 instance-action", "logind"
	type announcement struct {
		by       string
		deadline time.Duration
	}
	for name, test := range map[string]struct {
		late          bool
		first, second announcement // the second comes 10 s after the first
		kills         []string
		released      time.Duration
	}{
		"a notice, overtaken by the host": {
			first: announcement{notice, 120 * time.Second}, second: announcement{logind, 27 * time.Second},
			kills: []string{"web 0s: 20 s", "web 10s: 7 s", "etcd 17s: 10 s"}, released: 26500 * time.Millisecond,
		},
		"a notice with a late start, overtaken by the host": {
			late: true, first: announcement{notice, 120 * time.Second}, second: announcement{logind, 27 * time.Second},
			kills: []string{"web 10s: 7 s", "etcd 17s: 10 s"}, released: 26500 * time.Millisecond,
		},
		"a notice with a late start, and the host with as much time": {
			late: true, first: announcement{notice, 120 * time.Second}, second: announcement{logind, 120 * time.Second},
			kills: []string{"web 1m27.5s: 20 s", "etcd 1m47.5s: 10 s"}, released: 117500 * time.Millisecond,
		},
		"the host, then a notice of more time": {
			first: announcement{logind, 27 * time.Second}, second: announcement{notice, 120 * time.Second},
			kills: []string{"web 0s: 17 s", "etcd 17s: 10 s"}, released: 26500 * time.Millisecond,
		},
		"the host, overtaken by a notice": {
			first: announcement{logind, 120 * time.Second}, second: announcement{notice, 27 * time.Second},
			kills: []string{"web 0s: 20 s", "web 10s: 7 s", "etcd 17s: 10 s"}, released: 26500 * time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			onSpot(t, func(n *node) {
				n.opts.LateStart = func(event shutdown.Event) bool { return test.late && event.Origin == notice }
			}, func(t *testing.T, n *node, s *spot, told *tally) {
				began := time.Now().Add(5 * time.Second) // the agent asks every five seconds
				announce := func(a announcement) {
					if a.by == notice {
						s.interrupt(n, began.Add(a.deadline))
						return
					}
					n.advance(5 * time.Second)
					n.host.Announce(shutdown.Event{Origin: logind, Kind: shutdown.KindPoweroff, Deadline: began.Add(a.deadline)})
					synctest.Wait()
				}
				announce(test.first)
				require.False(t, n.m.Admit(n.pods[0]).Admit)
				n.advance(5 * time.Second)
				announce(test.second)
				n.advance(3 * time.Minute)
				require.Equal(t, test.kills, n.killsSince(began))
				require.Equal(t, test.released, n.releasedAfter(began))
				require.Len(t, told.reports, 1)
				report := <-told.reports
				require.Equal(t, []string{"web", "etcd"}, names(report))
				require.Equal(t, logind, report.Origin, "the host's counts before a notice's")
				require.True(t, report.Started.Equal(began))
				require.False(t, report.Cancelled)
				require.Equal(t, 2.0, told.podsCounted(t))
			})
		})
	}
}

// A notice that is taken back takes back its own announcement. Alone it cancels the shutdown, and
// the node goes on. What the host has announced stays, and the drain goes on for it.
func TestNoticeTakenBack(t *testing.T) {
	for name, logind := range map[string]time.Duration{"alone": 0, "beside the host": 60 * time.Second} {
		t.Run(name, func(t *testing.T) {
			onSpot(t, func(*node) {}, func(t *testing.T, n *node, s *spot, told *tally) {
				began := time.Now().Add(5 * time.Second)
				s.interrupt(n, began.Add(2*time.Minute))
				if logind > 0 {
					n.host.Announce(shutdown.Event{Origin: "logind", Kind: shutdown.KindPoweroff, Deadline: began.Add(logind)})
				}
				n.advance(5 * time.Second)
				s.interrupt(n, time.Time{})
				require.Equal(t, logind == 0, n.m.Admit(n.pods[1]).Admit, "etcd was not signalled")
				require.Equal(t, logind == 0, n.m.ShutdownStatus() == nil)
				n.advance(2 * time.Minute)
				require.Len(t, told.reports, 1)
				report := <-told.reports
				require.Equal(t, logind == 0, report.Cancelled)
				if logind == 0 {
					require.Equal(t, []string{"web 0s: 20 s"}, n.killsSince(began))
					require.Equal(t, 1, n.host.Held())
					require.True(t, n.m.Admit(n.pods[0]).Admit, "web has ended")
					s.interrupt(n, time.Now().Add(2*time.Minute))
					require.Error(t, n.m.ShutdownStatus(), "another notice is another shutdown")
					return
				}
				require.Equal(t, []string{"web 0s: 20 s", "etcd 20s: 10 s"}, n.killsSince(began))
				require.Equal(t, 30*time.Second, n.releasedAfter(began))
				require.Equal(t, "logind", report.Origin)
			})
		})
	}
}

// The host takes its shutdown back, and the notice stands: the drain goes on. Then the notice is
// taken back too, and the shutdown is cancelled.
func TestTheHostTakesItsShutdownBackAndTheNoticeStands(t *testing.T) {
	onSpot(t, func(*node) {}, func(t *testing.T, n *node, s *spot, told *tally) {
		s.interrupt(n, time.Now().Add(2*time.Minute))
		n.host.Announce(shutdown.Event{Origin: "logind", Deadline: time.Now().Add(time.Minute)})
		n.advance(2 * time.Second)
		n.host.Cancel()
		n.advance(2 * time.Second)
		require.Error(t, n.m.ShutdownStatus())
		s.interrupt(n, time.Time{})
		require.NoError(t, n.m.ShutdownStatus())
		n.advance(time.Minute)
		require.Len(t, told.reports, 1)
		require.True(t, (<-told.reports).Cancelled)
		require.Len(t, n.killer.Kills(), 1, "etcd was not signalled")
		require.Equal(t, 1, n.host.Held())
	})
}

// An agent that is restarted reads the notice again. The shutdown that its predecessor has begun
// goes on, with the deadlines that it had.
func TestNoticeAndARestart(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		told := countReports(t, n)
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		s, provider := serveSpot(t)
		s.interrupt(n, time.Now().Add(2*time.Minute))
		began := time.Now()
		n.runOnBoot(one)
		stop := watchSpot(t, n, provider)
		n.advance(8 * time.Second)
		n.crash()
		stop()
		n.runOnBoot(one)
		stop = watchSpot(t, n, provider)
		n.advance(time.Minute)
		require.Equal(t, []string{"web 8s: 12 s", "etcd 20s: 10 s"}, n.killsSince(began))
		require.Equal(t, 30*time.Second, n.releasedAfter(began))
		require.Len(t, told.reports, 1)
		require.Equal(t, []string{"web", "etcd"}, names(<-told.reports))
		stop()
	})
}
