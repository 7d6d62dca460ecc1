package kills_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

var (
	errBusy  = errors.New("busy")
	errFinal = errors.New("no such pod")
	errLetGo = errors.New("the host goes on")
)

// killer is a killer as a [kills.Killing] calls it.
type killer func(ctx context.Context, pod *v1.Pod, seconds int64) (kills.Result, error)

// rig is a drain of a shutdown. Each test sets its killer.
type rig struct {
	*kills.Killing

	calls   call.Group
	letGo   context.CancelCauseFunc
	account *kills.Account
	passage uint64
	picker  *kills.Picker

	mu        sync.Mutex
	granted   map[string][]int64 // of each call of the killer
	at        map[string][]time.Duration
	signalled []string
	ended     []string
	gaveUp    map[string]error
	failed    int
}

// newRig returns the first drain of a shutdown that gives each pod 20 s.
func newRig(t *testing.T, kill killer) *rig {
	t.Helper()
	return newRigOn(t, kills.NewAccount(time.Now(), nobody), 1, kill)
}

// nobody is the kills that are under way of an account that is the first.
func nobody(types.UID) *kills.Kill { return nil }

// overtakes returns the next drain of the same shutdown.
func (r *rig) overtakes(t *testing.T, kill killer) *rig {
	t.Helper()
	return newRigOn(t, r.account, r.passage+1, kill)
}

// follows returns the first drain of a shutdown that follows this one, which was cancelled.
func (r *rig) follows(t *testing.T, kill killer) *rig {
	t.Helper()
	return newRigOn(t, kills.NewAccount(time.Now(), r.underway), r.passage+1, kill)
}

// underway returns the kill of a pod that was signalled and has not ended.
func (r *rig) underway(key types.UID) *kills.Kill {
	if k := r.account.Find(key); k != nil && k.UnderWay() {
		return k
	}
	return nil
}

func newRigOn(t *testing.T, account *kills.Account, passage uint64, kill killer) *rig {
	t.Helper()
	began := time.Now()
	r := &rig{
		account: account, passage: passage, picker: kills.NewPicker(account, passage),
		granted: map[string][]int64{}, at: map[string][]time.Duration{}, gaveUp: map[string]error{},
	}
	ctx, letGo := context.WithCancelCause(t.Context())
	r.letGo = letGo
	t.Cleanup(func() { letGo(nil) })
	r.Killing = &kills.Killing{
		Context: ctx,
		Calls:   &r.calls,
		Unless:  func(signal func()) bool { signal(); return true },
		Seconds: func(*v1.Pod) int64 { return 20 },
		Kill: func(ctx context.Context, pod *v1.Pod, seconds int64) (kills.Result, error) {
			r.locked(func() {
				r.granted[pod.Name] = append(r.granted[pod.Name], seconds)
				r.at[pod.Name] = append(r.at[pod.Name], time.Since(began))
			})
			return kill(ctx, pod, seconds)
		},
		Final:     func(err error) bool { return errors.Is(err, errFinal) },
		Signalled: func(k *kills.Kill) { r.locked(func() { r.signalled = append(r.signalled, k.Pod().Name) }) },
		Ended:     func(k *kills.Kill) { r.locked(func() { r.ended = append(r.ended, k.Pod().Name) }) },
		Failed:    func(*kills.Kill, error) { r.locked(func() { r.failed++ }) },
		GaveUp:    func(k *kills.Kill, err error) { r.locked(func() { r.gaveUp[k.Pod().Name] = err }) },
	}
	return r
}

func (r *rig) locked(what func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what()
}

// endedPods returns the pods that have ended so far, sorted.
func (r *rig) endedPods() (names []string) {
	r.locked(func() { names = slices.Clone(r.ended) })
	slices.Sort(names)
	return names
}

// startBatch lists pods of these names and kills them.
func (r *rig) startBatch(names ...string) (*kills.Batch, []*kills.Kill) {
	r.picker.AddListed(podsOf(names...), priorityOfAll)
	picked := r.picker.Pick(0, everyone)
	return r.Start(picked), picked
}

func pod(name string) *v1.Pod {
	p := &v1.Pod{}
	p.Namespace, p.Name, p.UID = "default", name, types.UID("uid-"+name)
	return p
}

func podsOf(names ...string) []*v1.Pod {
	pods := make([]*v1.Pod, len(names))
	for i, name := range names {
		pods[i] = pod(name)
	}
	return pods
}

// priorityOfAll gives each pod the priority 7.
func priorityOfAll(pods []*v1.Pod) []int32 { return slices.Repeat([]int32{7}, len(pods)) }

func everyone(int32) bool { return true }

func podNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("pod-%03d", i)
	}
	return names
}

func namesOf(picked []*kills.Kill) []string {
	var all []string
	for _, k := range picked {
		all = append(all, k.Pod().Name)
	}
	return all
}

// takes is a killer whose pods take some time.
func takes(d time.Duration) killer {
	return func(context.Context, *v1.Pod, int64) (kills.Result, error) {
		<-time.After(d)
		return kills.Result{Outcome: "Graceful"}, nil
	}
}

// fails is a killer that always fails.
func fails(context.Context, *v1.Pod, int64) (kills.Result, error) { return kills.Result{}, errBusy }

// awaitBatch waits for the end of a batch and returns when that was.
func awaitBatch(t *testing.T, batch *kills.Batch) time.Time {
	t.Helper()
	at, err := batch.Done.Await(t.Context(), time.Now().Add(time.Hour))
	require.NoError(t, err)
	return at
}
