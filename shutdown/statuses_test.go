package shutdown_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/need"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// slowServer is a reporter whose calls all take the same time.
type slowServer struct {
	takes time.Duration

	mu           sync.Mutex
	acknowledged map[string]time.Time // the final statuses, by the pods' names
	asked        map[string]int
	last         time.Time // of the acknowledgements
	answer       func(ctx context.Context, pod *v1.Pod) error
}

func newSlowServer(takes time.Duration) *slowServer {
	return &slowServer{takes: takes, acknowledged: map[string]time.Time{}, asked: map[string]int{}}
}

func (s *slowServer) PublishNode(context.Context, shutdown.NodeState) error { return nil }

func (s *slowServer) FlushPod(ctx context.Context, pod *v1.Pod) error {
	s.mu.Lock()
	s.asked[pod.Name]++
	s.mu.Unlock()
	err := waitOrCancelled(ctx, s.takes)
	if err == nil && s.answer != nil {
		err = s.answer(ctx, pod)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.last = time.Now()
		s.acknowledged[pod.Name] = s.last
	}
	return err
}

// waitOrCancelled waits for d. It returns the cause of ctx if that ends first.
func waitOrCancelled(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// acknowledgedBefore returns how many final statuses were acknowledged up to a time, and when the
// last of these was.
func (s *slowServer) acknowledgedBefore(t time.Time) (n int, last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.acknowledged {
		if !at.After(t) {
			n++
			if at.After(last) {
				last = at
			}
		}
	}
	return n, last
}

// flushCalls returns how many calls of FlushPod there were, and for how many pods.
func (s *slowServer) flushCalls() (calls, pods int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.asked {
		calls += n
	}
	return calls, len(s.asked)
}

// markingServer also marks pods, which takes as long as a status.
type markingServer struct{ *slowServer }

func (s markingServer) MarkNotReady(ctx context.Context, _ *v1.Pod) error {
	return waitOrCancelled(ctx, s.takes)
}

func manyPods(n int, grace int64) []*v1.Pod {
	pods := make([]*v1.Pod, n)
	for i := range pods {
		pods[i] = shutdowntest.Pod(fmt.Sprintf("pod-%04d", i), 0, grace)
	}
	return pods
}

// The host is asked for 20 s and 10 s of the pods, 2 s for the node state, 1 s for the statuses
// of each bucket, 2 s for the containers and a margin of half a second. It waits for 50 ms more
// than these 36.5 s, so that no answer comes at the very end. With marks, which have a second in
// each bucket, it waits for 2 s more. No request takes a whole second: a call may be given up then.
const (
	odd          = 50 * time.Millisecond
	hostWaits    = 36500*time.Millisecond + odd
	letGoBy      = hostWaits - 500*time.Millisecond
	marksTake    = 2 * time.Second
	marksReserve = time.Second
	bucketTime   = 20 * time.Second
)

// paceRow is a line of the table.
type paceRow struct {
	uses         bool // the pods use all of their grace period
	pods         int
	takes        time.Duration
	acknowledged int
	waited       time.Duration // from the last acknowledgement to the release
	release      time.Duration
}

func (r paceRow) String() string {
	ends := "at once"
	if r.uses {
		ends = "after 20 s"
	}
	return fmt.Sprintf("| %s | %d | %v | %d | %v | %v |", ends, r.pods, r.takes, r.acknowledged, r.release, r.waited)
}

const tableHead = "| pods end | pods | one request | acknowledged | host let go after | after the last answer |\n|---|---|---|---|---|---|"

// runPaceRow runs a shutdown with the pods of a row and fills in what was measured.
func runPaceRow(t *testing.T, r paceRow, marks bool) (paceRow, shutdown.Report) {
	t.Helper()
	var report shutdown.Report
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, manyPods(r.pods, 20))
		if r.uses {
			n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		}
		server := newSlowServer(r.takes)
		n.opts.Reporter = server
		waits := hostWaits
		if marks {
			n.opts.Reporter = markingServer{server}
			waits += marksTake
		}
		n.run()
		began := time.Now()
		n.host.Announce(shutdown.Event{Deadline: began.Add(waits)})
		n.advance(waits)
		released, ok := n.host.Released()
		require.True(t, ok)
		var last time.Time
		r.acknowledged, last = server.acknowledgedBefore(released)
		r.release, r.waited = released.Sub(began), released.Sub(last)
		report = n.lastReport()
		n.end()
		require.NoError(t, n.host.Err())
	})
	return r, report
}

// Final statuses are sent ten at a time, as fast as the server answers, as long as the host
// waits. The host is released right after the last answer. The report names the statuses that
// were not acknowledged by then.
func TestStatusesByTheServersPace(t *testing.T) {
	counts := []int{1, 30, 500, 5000}
	if underRace || need.Less(t, "statuses of 500 and 5000 pods") {
		counts = counts[:2]
	}
	table := []string{tableHead}
	for _, uses := range []bool{false, true} {
		for _, pods := range counts {
			for _, ms := range []int{0, 20, 100, 200, 500, 970} {
				want := paceRow{uses: uses, pods: pods, takes: time.Duration(ms) * time.Millisecond}
				left, whole := letGoBy, pods
				if uses {
					left -= bucketTime
				}
				if ms > 0 {
					whole = min(pods, 10*int(left/want.takes))
				}
				got, report := runPaceRow(t, want, false)
				table = append(table, got.String())
				require.Equal(t, whole, got.acknowledged, got)
				require.LessOrEqual(t, got.release, letGoBy+250*time.Millisecond, got)
				if whole == pods {
					require.LessOrEqual(t, got.waited, 100*time.Millisecond, got)
					require.LessOrEqual(t, got.release, letGoBy, got)
					require.Empty(t, report.Errors, got)
				} else {
					require.Len(t, report.Errors, 1, got)
					require.GreaterOrEqual(t, got.release, letGoBy, got)
				}
				require.Len(t, report.Pods, pods)
				for _, pod := range report.Pods {
					require.EqualValues(t, 20, pod.GrantedSeconds, got)
				}
			}
		}
	}
	t.Log("\n" + strings.Join(table, "\n"))
}

// With marks each pod is marked not ready before it is killed. Marks and statuses share the ten
// calls, so statuses are delayed by the second that a bucket has for its marks at most.
func TestStatusesBesideMarks(t *testing.T) {
	counts := []int{1, 30, 500, 5000}
	if underRace || need.Less(t, "statuses of 500 and 5000 pods") {
		counts = counts[:2]
	}
	table := []string{tableHead}
	for _, uses := range []bool{false, true} {
		for _, pods := range counts {
			for _, ms := range []int{0, 20, 100, 200, 500, 970} {
				want := paceRow{uses: uses, pods: pods, takes: time.Duration(ms) * time.Millisecond}
				left, least, most := letGoBy+marksTake, pods, pods
				if uses {
					left -= bucketTime
				}
				if ms > 0 {
					least = min(pods, 10*int((left-marksReserve)/want.takes))
					most = min(pods, 10*int(left/want.takes))
				}
				got, report := runPaceRow(t, want, true)
				table = append(table, got.String())
				require.GreaterOrEqual(t, got.acknowledged, least, got)
				require.LessOrEqual(t, got.acknowledged, most, got)
				require.LessOrEqual(t, got.release, letGoBy+marksTake+250*time.Millisecond, got)
				if got.acknowledged == pods {
					require.LessOrEqual(t, got.waited, 100*time.Millisecond, got)
				}
				for _, pod := range report.Pods {
					require.EqualValues(t, 20, pod.GrantedSeconds, got)
				}
			}
		}
	}
	t.Log("\n" + strings.Join(table, "\n"))
}

// A server that answers in 20 ms has the final status of the first pod that ends within 200 ms,
// whatever other pods do.
func TestFirstStatusIsNotHeldUp(t *testing.T) {
	for name, set := range map[string]func(n *node){
		"one hangs": func(n *node) {
			n.pods = append(n.pods, shutdowntest.Pod("stuck", 0, 20))
			n.killer.Pods["stuck"] = shutdowntest.Behaviour{Hangs: true, Deaf: true}
		},
		"500 others end right after it": func(n *node) {
			n.pods = append(n.pods, manyPods(500, 20)...)
			n.killer.Default = shutdowntest.Behaviour{Takes: time.Millisecond}
		},
		"500 others use all of their time": func(n *node) {
			n.pods = append(n.pods, manyPods(500, 20)...)
			n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		},
		"volumes hang": func(n *node) {
			n.opts.Volumes = volumes(func(ctx context.Context, _ []*v1.Pod) error { <-ctx.Done(); return context.Cause(ctx) })
		},
	} {
		for _, marks := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, marks %t", name, marks), func(t *testing.T) {
				inBubble(t, list(shutdowntest.Pod("first", 0, 20)), func(t *testing.T, n *node) {
					n.killer.Pods = map[string]shutdowntest.Behaviour{"first": {}}
					server := newSlowServer(20 * time.Millisecond)
					n.opts.Reporter = server
					if marks {
						n.opts.Reporter = markingServer{server}
					}
					set(n)
					n.run()
					began := time.Now()
					n.announce()
					n.advance(200 * time.Millisecond)
					_, _ = server.acknowledgedBefore(time.Now())
					require.Contains(t, server.acknowledged, "first")
					require.LessOrEqual(t, server.acknowledged["first"].Sub(began), 200*time.Millisecond)
				})
			})
		}
	}
}

// If the host leaves less time or cancels, unacknowledged statuses are still sent: by the drain
// that overtakes, which waits for them, or while the node goes on.
func TestStatusesAreCarriedOver(t *testing.T) {
	for name, next := range map[string]func(n *node){
		"overtaken": func(n *node) { n.host.Announce(shutdown.Event{Deadline: time.Now().Add(20 * time.Second)}) },
		"cancelled": func(n *node) { n.host.Cancel() },
		"begun again": func(n *node) {
			n.host.Cancel()
			synctest.Wait()
			n.host.Announce(shutdown.Event{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, manyPods(100, 20), func(t *testing.T, n *node) {
				server := newSlowServer(970 * time.Millisecond)
				n.opts.Reporter = server
				n.run()
				n.announce()
				n.advance(2500 * time.Millisecond)
				n.setPods() // all pods have ended
				next(n)
				n.advance(9 * time.Second)
				require.Len(t, server.acknowledged, 100)
				calls, pods := server.flushCalls()
				require.Equal(t, 100, calls, "one request a pod")
				require.Equal(t, 100, pods)
				if name != "cancelled" {
					released, ok := n.host.Released()
					require.True(t, ok)
					require.True(t, released.Equal(server.last), "released with the last answer")
				}
			})
		})
	}
}

// The final status of a pod that two drains have signalled is sent once.
func TestStatusOfAPodThatJoinsIsToldOnce(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("joins", 0, 5), shutdowntest.Pod("shortened", 0, 20)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		server := newSlowServer(20 * time.Millisecond)
		n.opts.Reporter = server
		n.run()
		n.announce()
		n.advance(time.Second)
		n.host.Announce(shutdown.Event{Deadline: time.Now().Add(20 * time.Second)})
		n.advance(time.Minute)
		require.Equal(t, map[string]int{"joins": 1, "shortened": 1}, server.asked)
		for _, pod := range n.lastReport().Pods {
			require.False(t, pod.Unflushed, pod.Name)
		}
	})
}
