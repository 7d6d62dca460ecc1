//go:build unix && go1.25

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
)

var errCut = errors.New("the connection was cut")

// link is the network between one agent and the job service: 100 ms there and 100 ms back, until
// the agent is killed. If the service is a bad one, some requests take 5 s more there, and some back.
// A request that is on its way arrives, whatever becomes of the agent.
type link struct {
	service  *jobService
	cut      atomic.Bool
	requests atomic.Int32
}

func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	there, back := 100*time.Millisecond, 100*time.Millisecond
	switch n := l.requests.Add(1) % 11; {
	case l.cut.Load():
		return nil, errCut
	case l.service.loses && n == 3:
		there += 5 * time.Second
	case l.service.loses && n == 7:
		back += 5 * time.Second
	}
	answers := make(chan *http.Response, 1)
	go func() {
		<-time.After(there)
		answers <- l.serve(r)
	}()
	var response *http.Response
	select {
	case response = <-answers:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	select {
	case <-time.After(back):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if response == nil || l.cut.Load() {
		return nil, errCut
	}
	return response, nil
}

// serve returns the answer of the service, nil if it gives none.
func (l *link) serve(r *http.Request) (response *http.Response) {
	defer func() { _ = recover() }() // http.ErrAbortHandler
	answer := httptest.NewRecorder()
	l.service.ServeHTTP(answer, r)
	return answer.Result()
}

// world is a job service and the pods of an API server, on which an agent works as
// virtual-kubelet does: what the API server has no more it deletes when it starts, and when it
// has seen it before. The agent can be killed and started again.
type world struct {
	*testing.T

	service *jobService
	began   time.Time
	agent   *agent // nil: it was killed

	mu    sync.Mutex
	pods  map[types.UID]*v1.Pod // of the API server
	ended map[types.UID]bool    // told to have ended
	lies  []string              // who was told to have ended and runs
}

// agent is one process of the agent.
type agent struct {
	*virtualkubelet.Provider

	link    *link
	ctx     context.Context
	cancel  context.CancelFunc
	ready   atomic.Bool        // virtual-kubelet's workers run
	deleted map[types.UID]int  // of which pods it has called DeletePod, and why
	seen    map[types.UID]bool // which pods of the API server it has seen
	working sync.WaitGroup
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, service: newJobService(40 * time.Second), began: time.Now(), pods: map[types.UID]*v1.Pod{}, ended: map[types.UID]bool{}}
	w.service.loses = true
	w.service.lasts = func(pod *v1.Pod) time.Duration {
		if strings.HasPrefix(pod.Name, "short") {
			return time.Minute
		}
		return 0
	}
	return w
}

// start starts an agent.
func (w *world) start() {
	a := &agent{link: &link{service: w.service}, deleted: map[types.UID]int{}, seen: map[types.UID]bool{}}
	for _, pod := range w.all() {
		a.seen[pod.UID] = true
	}
	a.ctx, a.cancel = context.WithCancel(w.Context())
	provider, err := virtualkubelet.New(virtualkubelet.Options{Pods: &jobs{url: "http://jobs", client: http.Client{Transport: a.link}}})
	require.NoError(w, err)
	a.Provider, w.agent = provider, a
	provider.NotifyPods(a.ctx, func(pod *v1.Pod) {
		if !a.link.cut.Load() {
			w.told(pod)
		}
	})
	a.working.Go(func() {
		known, err := a.GetPods(a.ctx)
		if err != nil {
			return
		}
		for _, pod := range known {
			if w.named(pod.Name) == nil {
				_ = a.DeletePod(a.ctx, pod)
			}
		}
		a.ready.Store(true)
	})
}

// kill kills the agent: nothing that it does from now on has an effect.
func (w *world) kill() {
	a := w.agent
	if a == nil {
		return
	}
	w.agent = nil
	a.link.cut.Store(true)
	a.cancel()
	require.NoError(w, a.Close(w.Context()))
	a.working.Wait()
}

// told is a status that virtual-kubelet has got.
func (w *world) told(pod *v1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed {
		return
	}
	w.ended[pod.UID] = true
	if w.service.runs(pod.UID) {
		w.lies = append(w.lies, fmt.Sprintf("%s at %v", pod.Name, time.Since(w.began)))
	}
}

// named returns the API server's pod of a name, or nil.
func (w *world) named(name string) *v1.Pod {
	for _, pod := range w.all() {
		if pod.Name == name {
			return pod
		}
	}
	return nil
}

func (w *world) all() []*v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.pods))
}

// create creates pods in the API server.
func (w *world) create(kind string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range n {
		name := fmt.Sprintf("%s-%d", kind, i)
		w.pods[types.UID(name)] = &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
			Spec:       v1.PodSpec{TerminationGracePeriodSeconds: ptr.To(int64(30)), Containers: []v1.Container{{Name: "app"}}},
		}
	}
}

// remove deletes the pods of a kind, with a grace period; 0 removes them from the API server.
func (w *world) remove(kind string, seconds int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for uid, pod := range w.pods {
		switch {
		case !strings.HasPrefix(pod.Name, kind):
		case seconds == 0:
			delete(w.pods, uid)
		case pod.DeletionTimestamp == nil:
			pod = pod.DeepCopy()
			pod.DeletionTimestamp = ptr.To(metav1.NewTime(time.Now().Add(time.Duration(seconds) * time.Second)))
			pod.DeletionGracePeriodSeconds = &seconds
			w.pods[uid] = pod
		}
	}
}

// sync does what virtual-kubelet does with the API server's pods: it creates and deletes them in
// the provider, and removes a deleted one when its grace period is over, whether it has ended or
// not.
func (w *world) sync() {
	for _, pod := range w.all() {
		if pod.DeletionTimestamp != nil && !time.Now().Before(pod.DeletionTimestamp.Time) && w.agent != nil {
			w.mu.Lock()
			delete(w.pods, pod.UID)
			w.mu.Unlock()
		}
	}
	a := w.agent
	if a == nil || !a.ready.Load() {
		return
	}
	for _, pod := range w.all() {
		a.seen[pod.UID] = true
		_, err := a.GetPod(a.ctx, "ns", pod.Name)
		switch {
		case pod.DeletionTimestamp != nil && a.deleted[pod.UID] == 0:
			a.deleted[pod.UID]++
			_ = a.DeletePod(a.ctx, pod)
		case pod.DeletionTimestamp == nil && err != nil && !w.hasEnded(pod.UID):
			require.NoError(w, a.CreatePod(a.ctx, pod))
		}
	}
	known, err := a.GetPods(a.ctx)
	require.NoError(w, err)
	for _, pod := range known {
		if w.named(pod.Name) == nil && a.seen[pod.UID] && a.deleted[pod.UID] < 2 {
			a.deleted[pod.UID] = 2
			_ = a.DeletePod(a.ctx, pod)
		}
	}
}

func (w *world) hasEnded(uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended[uid]
}

// play plays six minutes, in which the agent is killed at some times, and started again 3 s later.
func (w *world) play(kills ...time.Duration) {
	w.create("early", 3)   // deleted before the service breaks
	w.create("broken", 6)  // deleted while it is broken
	w.create("forced", 3)  // removed from the API server meanwhile
	w.create("short", 6)   // end by themselves, and are deleted later
	w.create("running", 6) // run on
	w.start()
	steps := map[time.Duration]func(){
		15 * time.Second: func() { w.remove("early", 10) },
		20 * time.Second: func() { w.service.setBroken(true) },
		25 * time.Second: func() {
			w.remove("broken", 30)
			w.create("late", 3)
		},
		30 * time.Second: func() { w.remove("forced", 0) },
		50 * time.Second: func() { w.service.setBroken(false) },
		100 * time.Second: func() {
			w.remove("short", 30)
			w.remove("late", 5)
		},
	}
	again := time.Duration(0)
	for at := time.Duration(0); at < 6*time.Minute; at += time.Second {
		if step := steps[at]; step != nil {
			step()
		}
		w.sync()
		next := time.After(time.Second)
		if i := slices.IndexFunc(kills, func(kill time.Duration) bool { return kill >= at && kill < at+time.Second }); i >= 0 {
			<-time.After(kills[i] - at)
			w.kill()
			again = kills[i] + 2*time.Second
		}
		<-next
		if at > again && w.agent == nil {
			w.start()
		}
	}
	w.kill()
	<-time.After(6 * time.Second) // until every request has arrived
}

// An agent that is killed and started again at any moment tells of no end of a job that runs, and
// leaves none behind, though the service loses DELETEs, is broken for 30 s and lets jobs run on.
func TestNoJobIsLeakedOrCalledEndedWhileItRuns(t *testing.T) {
	step := 1300 * time.Millisecond
	if testing.Short() {
		step *= 5
	}
	for killedAt := time.Duration(0); killedAt < 220*time.Second; killedAt += step {
		requireNothingIsLeaked(t, killedAt)
	}
}

// The same holds for an agent that is killed again and again.
func TestAnAgentThatIsKilledOften(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 26))
		var kills []time.Duration
		for at := time.Duration(random.Int64N(int64(10 * time.Second))); at < 220*time.Second; at += 3*time.Second + time.Duration(random.Int64N(int64(30*time.Second))) {
			kills = append(kills, at)
		}
		requireNothingIsLeaked(t, kills...)
	}
}

// requireNothingIsLeaked plays with an agent that is killed at some times, and requires that no job
// is left behind, created twice, deleted while it runs, or told to have ended then.
func requireNothingIsLeaked(t *testing.T, kills ...time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.play(kills...)
		require.Empty(t, w.lies, "killed at %v", kills)
		require.Empty(t, w.service.cut, "killed at %v", kills)
		for uid, job := range w.service.jobs {
			require.True(t, strings.HasPrefix(string(uid), "running") && job.runs(), "%s, killed at %v", uid, kills)
		}
		require.Len(t, w.service.jobs, 6, "killed at %v", kills)
		for uid, times := range w.service.created {
			require.Equal(t, 1, times, "%s, killed at %v", uid, kills)
		}
		for _, uid := range []types.UID{"short-0", "short-5"} {
			require.True(t, w.ended[uid], "killed at %v", kills)
		}
	})
}

// A thousand pods cost one status request an interval.
func TestOneStatusRequestForAThousandJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.service.loses = false
		w.create("running", 1000)
		w.start()
		for range 59 {
			w.sync()
			<-time.After(time.Second)
		}
		<-time.After(time.Second / 2) // before the request at 60 s
		synctest.Wait()
		require.Len(t, w.service.jobs, 1000)
		require.Equal(t, 12, w.service.lists)
		w.kill()
		<-time.After(time.Second)
	})
}

// Authors of a provider for whole pods read jobs.go first.
func TestTheProviderOfJobsIsShort(t *testing.T) {
	source, err := os.ReadFile("jobs.go")
	require.NoError(t, err)
	require.Less(t, strings.Count(string(source), "\n"), 120)
}
