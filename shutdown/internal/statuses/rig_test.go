package statuses_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/statuses"
)

var (
	errRefused = errors.New("refused")
	errLetGo   = errors.New("the host goes on")
)

// server answers the calls of a queue.
type server struct {
	takes  time.Duration                                            // of each call, unless its context ends before
	answer func(ctx context.Context, what, pod string, n int) error // of the n-th call for a pod, from 0; nil: no call fails

	mu    sync.Mutex
	began time.Time
	calls []string        // in the order of their beginnings
	at    []time.Duration // of the same
	limit []time.Duration // of their contexts
	most  int             // at the same time
	now   int
}

func pod(name string) *v1.Pod {
	p := &v1.Pod{}
	p.Namespace, p.Name = "default", name
	return p
}

// callNamed returns a function for the queue that calls the server. what names the call.
func (s *server) callNamed(what string) statuses.Func {
	return func(ctx context.Context, pod *v1.Pod) error {
		n := s.startCall(ctx, what+" "+pod.Name)
		defer s.endCall()
		if s.takes > 0 {
			timer := time.NewTimer(s.takes)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if s.answer == nil {
			return nil
		}
		return s.answer(ctx, what, pod.Name, n)
	}
}

func (s *server) startCall(ctx context.Context, call string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, before := range s.calls {
		if before == call {
			n++
		}
	}
	s.calls, s.at = append(s.calls, call), append(s.at, time.Since(s.began))
	ends, _ := ctx.Deadline()
	s.limit = append(s.limit, time.Until(ends))
	s.now++
	s.most = max(s.most, s.now)
	return n
}

func (s *server) endCall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
}

// callNames returns the names of the calls so far, in order.
func (s *server) callNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// callStarts returns when the calls with a name began.
func (s *server) callStarts(call string) (times []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.calls {
		if c == call {
			times = append(times, s.at[i])
		}
	}
	return times
}

// rig is a queue with a server.
type rig struct {
	*server
	*statuses.Queue

	group call.Group
	stop  context.CancelCauseFunc

	mu    sync.Mutex
	acked []string
	lost  []string // of restores
}

func inBubble(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancelCause(t.Context())
		r := &rig{server: &server{began: time.Now()}, stop: stop}
		r.Queue = statuses.New(ctx, &r.group)
		test(t, r)
		stop(errLetGo)
		require.Empty(t, r.group.Wait(nil))
	})
}

func (r *rig) queueStatuses(names ...string) {
	for _, name := range names {
		r.Status(r.callNamed("status"), pod(name), func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.acked = append(r.acked, name)
		})
	}
}

func (r *rig) acknowledged() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.acked)
}

func (r *rig) queueRestore(name string, lasts time.Duration) {
	r.Restore(r.callNamed("restore"), pod(name), time.Now().Add(lasts), func(err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lost = append(r.lost, name+": "+err.Error())
	})
}

func (r *rig) notRestored() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lost)
}

func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func podNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("pod-%03d", i)
	}
	return names
}

// countPrefix returns how many calls have names with a prefix.
func countPrefix(calls []string, word string) (n int) {
	for _, c := range calls {
		if strings.HasPrefix(c, word) {
			n++
		}
	}
	return n
}
