package outbox_test

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
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/outbox"
)

var errRefused = errors.New("refused")

// script answers the calls of an outbox. Its fields may be set at any time by set.
type script struct {
	mu     sync.Mutex
	takes  time.Duration                                            // each call, unless its context ends before
	answer func(ctx context.Context, what, pod string, n int) error // of the n-th call for a pod, from 0; nil: no call fails
	began  time.Time
	calls  []string        // in the order of their beginnings
	at     []time.Duration // of the same
	limit  []time.Duration // of their contexts
	sent   []*v1.Pod
	most   int // at the same time
	now    int
}

func (s *script) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// refuse has all calls fail with an error; nil: no call fails.
func (s *script) refuse(err error) {
	s.set(func() { s.answer = func(context.Context, string, string, int) error { return err } })
}

// refuseOnly has the calls of a pod fail.
func (s *script) refuseOnly(name string) {
	s.set(func() {
		s.answer = func(_ context.Context, _, pod string, _ int) error {
			if pod == name {
				return errRefused
			}
			return nil
		}
	})
}

// function returns a function for the outbox. what names its calls.
func (s *script) function(what string) func(context.Context, *v1.Pod) error {
	return func(ctx context.Context, pod *v1.Pod) error {
		takes, answer, n := s.startCall(ctx, what+" "+pod.Name, pod)
		defer s.endCall()
		if takes > 0 {
			timer := time.NewTimer(takes)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if answer == nil {
			return nil
		}
		return answer(ctx, what, pod.Name, n)
	}
}

func (s *script) startCall(ctx context.Context, call string, pod *v1.Pod) (takes time.Duration, answer func(context.Context, string, string, int) error, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, before := range s.calls {
		if before == call {
			n++
		}
	}
	ends, _ := ctx.Deadline()
	s.calls, s.at, s.limit = append(s.calls, call), append(s.at, time.Since(s.began)), append(s.limit, time.Until(ends).Truncate(time.Microsecond))
	s.sent = append(s.sent, pod)
	s.now++
	s.most = max(s.most, s.now)
	return s.takes, s.answer, n
}

func (s *script) endCall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
}

// callNames returns the names of the calls so far, in order.
func (s *script) callNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// callStarts returns when the calls with a name began.
func (s *script) callStarts(call string) (times []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.calls {
		if c == call {
			times = append(times, s.at[i])
		}
	}
	return times
}

// perSecond returns the number of calls that began in each second.
func (s *script) perSecond(seconds int) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := make([]int, seconds)
	for _, at := range s.at {
		if second := int(at / time.Second); second < seconds {
			n[second]++
		}
	}
	return n
}

// rig is an open outbox with a script.
type rig struct {
	*script
	*outbox.Outbox

	leave func() *call.Group

	mu       sync.Mutex
	told     []string // of the final statuses that were acknowledged or withdrawn
	lastTold time.Duration
	changes  int
}

// options are those of an outbox that stores and has all functions.
func (r *rig) options() outbox.Options {
	return outbox.Options{
		FlushPod: r.function("status"), MarkNotReady: r.function("mark"), RestoreReadiness: r.function("restore"),
		Publish: func(ctx context.Context, state any) error {
			return r.function("publish")(ctx, pod(fmt.Sprint(state)))
		},
		Changed: func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.changes++
		},
	}
}

// closed runs a test on an outbox that is not open.
func closed(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{script: &script{began: time.Now()}}
		r.Outbox = outbox.New(r.options())
		test(t, r)
		if r.leave != nil {
			require.Empty(t, r.leave().Wait(nil))
		}
	})
}

// inBubble runs a test on an open outbox.
func inBubble(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	closed(t, func(t *testing.T, r *rig) {
		r.leave = r.Open(quiet(t))
		test(t, r)
	})
}

// quiet returns the context of a test, without its log.
func quiet(t *testing.T) context.Context {
	t.Helper()
	return klog.NewContext(t.Context(), klog.Logger{})
}

func pod(name string) *v1.Pod {
	p := &v1.Pod{}
	p.Namespace, p.Name = "default", name
	return p
}

func staticPod(name string) *v1.Pod {
	p := pod(name)
	p.Annotations = map[string]string{staticpod.SourceAnnotation: "file"}
	return p
}

func pods(names ...string) []*v1.Pod {
	var all []*v1.Pod
	for _, name := range names {
		all = append(all, pod(name))
	}
	return all
}

func podNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("pod-%03d", i)
	}
	return names
}

// owe owes the final statuses of pods.
func (r *rig) owe(names ...string) {
	for _, name := range names {
		r.Owe(pod(name), nil, r.tells(name))
	}
}

// tells returns a function that has acknowledged return a name.
func (r *rig) tells(name string) func() {
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.told, r.lastTold = append(r.told, name), time.Since(r.began)
	}
}

// acknowledged returns the pods whose final statuses were acknowledged or withdrawn.
func (r *rig) acknowledged() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.told)
}

// changed reports whether Changed was called since the last time.
func (r *rig) changed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.changes
	r.changes = 0
	return n > 0
}

// record returns the debts for the record, as "FlushPod web".
func (r *rig) record() (all []string) {
	debts, _ := r.Debts()
	for kind, pod := range debts {
		all = append(all, kind.String()+" "+pod.Name)
	}
	return all
}

// store has the debts of this moment stored.
func (r *rig) store() {
	_, stored := r.Debts()
	stored()
}

// advance advances the time of the bubble and waits until all goroutines are blocked.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// silent is an answer that never comes.
func silent(ctx context.Context, _, _ string, _ int) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// countPrefix returns how many calls have names with a prefix.
func countPrefix(calls []string, prefix string) (n int) {
	for _, c := range calls {
		if strings.HasPrefix(c, prefix) {
			n++
		}
	}
	return n
}

// without returns the names that are not name.
func without(names []string, name string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return n == name })
}

// awaitMark returns the result of a mark that has completed.
func awaitMark(t *testing.T, m *call.Future[struct{}]) error {
	t.Helper()
	select {
	case <-m.Done():
	default:
		require.Fail(t, "the mark has not completed")
	}
	_, err := m.Await(t.Context(), time.Now())
	return err
}
