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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubegrace/kubegrace/internal/need"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
)

// errCut is the error of a request that gets no response, or whose agent was killed.
var errCut = errors.New("the connection was cut")

// link is the network between an agent and the job service. A request takes 100 ms, and so does a response. Some take 5 s
// longer, and some are lost. A request that was sent arrives at the service even if the agent is killed.
type link struct {
	service  *jobService
	isCut    atomic.Bool // the agent was killed
	requests atomic.Int32
}

// RoundTrip sends a request to the service. Of every eleven requests, one takes 5 s longer, the response to one takes 5 s
// longer, one is lost, and the responses to two are lost.
func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	requestDelay, responseDelay, isResponseLost := 100*time.Millisecond, 100*time.Millisecond, false
	switch n := l.requests.Add(1) % 11; {
	case l.isCut.Load(), n == 5:
		return nil, errCut
	case n == 3:
		requestDelay += 5 * time.Second
	case n == 7:
		responseDelay += 5 * time.Second
	case n == 2, n == 9:
		isResponseLost = true
	}
	answers := make(chan *http.Response, 1)
	go func() {
		<-time.After(requestDelay)
		answer := httptest.NewRecorder()
		l.service.ServeHTTP(answer, r)
		answers <- answer.Result()
	}()
	var response *http.Response
	select {
	case response = <-answers:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	select {
	case <-time.After(responseDelay):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if isResponseLost || l.isCut.Load() {
		return nil, errCut
	}
	return response, nil
}

// cluster is a simulation of an API server's pods, a job service, and an agent between them. The agent does what
// virtual-kubelet does, and can be killed and restarted. It deletes jobs whose pods the API server does not have: all
// of them when it starts, and later those whose pods it has seen in the API server.
type cluster struct {
	*testing.T

	service *jobService
	began   time.Time
	agent   *agent // nil while killed

	mu    sync.Mutex
	pods  map[types.UID]*v1.Pod // of the API server
	ended map[types.UID]bool    // the pods that were reported as Succeeded or Failed
	early []string              // the reports of Succeeded or Failed that came while the job was running
}

// agent is one process of the agent.
type agent struct {
	*virtualkubelet.Provider

	link    *link
	ctx     context.Context
	cancel  context.CancelFunc
	ready   atomic.Bool        // the deletions at the start are over
	deleted map[types.UID]int  // 1: DeletePod was called because the pod was deleted; 2: because the API server no longer has the pod
	seen    map[types.UID]bool // the pods that it has seen in the API server
	working sync.WaitGroup
}

// newCluster returns a cluster without an agent. A job ends 40 s after it is stopped. The job of a pod whose name begins
// with "short" ends after a minute by itself.
func newCluster(t *testing.T) *cluster {
	c := &cluster{T: t, service: newJobService(40 * time.Second), began: time.Now(), pods: map[types.UID]*v1.Pod{}, ended: map[types.UID]bool{}}
	c.service.duration = func(pod *v1.Pod) time.Duration {
		if strings.HasPrefix(pod.Name, "short") {
			return time.Minute
		}
		return 0
	}
	return c
}

// start starts an agent.
func (c *cluster) start() {
	a := &agent{link: &link{service: c.service}, deleted: map[types.UID]int{}, seen: map[types.UID]bool{}}
	for _, pod := range c.list() {
		a.seen[pod.UID] = true
	}
	a.ctx, a.cancel = context.WithCancel(c.Context())
	provider, err := virtualkubelet.New(virtualkubelet.Options{Pods: &jobs{url: "http://jobs", client: http.Client{Transport: a.link}}})
	require.NoError(c, err)
	a.Provider, c.agent = provider, a
	provider.NotifyPods(a.ctx, func(pod *v1.Pod) {
		if !a.link.isCut.Load() {
			c.statusReported(pod)
		}
	})
	a.working.Go(func() {
		known, err := a.GetPods(a.ctx)
		if err != nil {
			return
		}
		for _, pod := range known {
			if c.podNamed(pod.Name) == nil {
				_ = a.DeletePod(a.ctx, pod)
			}
		}
		a.ready.Store(true)
	})
}

// kill kills the agent. Whatever it does later has no effect.
func (c *cluster) kill() {
	a := c.agent
	if a == nil {
		return
	}
	c.agent = nil
	a.link.isCut.Store(true)
	a.cancel()
	require.NoError(c, a.Close(c.Context()))
	a.working.Wait()
}

// statusReported is called with each status that the provider reports to virtual-kubelet.
func (c *cluster) statusReported(pod *v1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed {
		return
	}
	c.ended[pod.UID] = true
	if c.service.isRunning(pod.UID) {
		c.early = append(c.early, fmt.Sprintf("%s at %v", pod.Name, time.Since(c.began)))
	}
}

// podNamed returns a pod of the API server, or nil.
func (c *cluster) podNamed(name string) *v1.Pod {
	for _, pod := range c.list() {
		if pod.Name == name {
			return pod
		}
	}
	return nil
}

// list returns the pods of the API server.
func (c *cluster) list() []*v1.Pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.pods))
}

// create creates n pods of a kind in the API server. Their names begin with the kind.
func (c *cluster) create(kind string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range n {
		name := fmt.Sprintf("%s-%d", kind, i)
		c.pods[types.UID(name)] = &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
			Spec:       v1.PodSpec{TerminationGracePeriodSeconds: ptr.To(int64(30)), Containers: []v1.Container{{Name: "app"}}},
		}
	}
}

// remove deletes the pods of a kind in the API server, with a grace period in seconds. With 0 they are gone at once.
func (c *cluster) remove(kind string, seconds int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, pod := range c.pods {
		switch {
		case !strings.HasPrefix(pod.Name, kind):
		case seconds == 0:
			delete(c.pods, uid)
		case pod.DeletionTimestamp == nil:
			pod = pod.DeepCopy()
			pod.DeletionTimestamp = ptr.To(metav1.NewTime(time.Now().Add(time.Duration(seconds) * time.Second)))
			pod.DeletionGracePeriodSeconds = &seconds
			c.pods[uid] = pod
		}
	}
}

// sync does what virtual-kubelet does: it creates and deletes the API server's pods in the provider. It removes a
// deleted pod from the API server when its grace period is over, even if the pod has not ended.
func (c *cluster) sync() {
	for _, pod := range c.list() {
		isDue := pod.DeletionTimestamp != nil && !time.Now().Before(pod.DeletionTimestamp.Time)
		if isDue && c.agent != nil { // it is the agent that removes the pod
			c.mu.Lock()
			delete(c.pods, pod.UID)
			c.mu.Unlock()
		}
	}
	a := c.agent
	if a == nil || !a.ready.Load() {
		return
	}
	for _, pod := range c.list() {
		a.seen[pod.UID] = true
		_, err := a.GetPod(a.ctx, "ns", pod.Name)
		switch {
		case pod.DeletionTimestamp != nil && a.deleted[pod.UID] == 0:
			a.deleted[pod.UID]++
			_ = a.DeletePod(a.ctx, pod)
		case pod.DeletionTimestamp == nil && err != nil && !c.hasEnded(pod.UID):
			require.NoError(c, a.CreatePod(a.ctx, pod))
		}
	}
	known, err := a.GetPods(a.ctx)
	require.NoError(c, err)
	for _, pod := range known {
		wasRemoved := c.podNamed(pod.Name) == nil && a.seen[pod.UID]
		if wasRemoved && a.deleted[pod.UID] < 2 { // the agent has not handled the removal yet
			a.deleted[pod.UID] = 2
			_ = a.DeletePod(a.ctx, pod)
		}
	}
}

// hasEnded reports whether the provider has reported the pod as Succeeded or Failed.
func (c *cluster) hasEnded(uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended[uid]
}

// run simulates six minutes, in which the agent is killed at the given times and restarted about 3 s later.
func (c *cluster) run(kills ...time.Duration) {
	c.create("early", 3)   // deleted before the service fails
	c.create("broken", 6)  // deleted while the service fails
	c.create("forced", 3)  // removed from the API server while the service fails
	c.create("short", 6)   // their jobs end by themselves, and the pods are deleted later
	c.create("running", 6) // never deleted
	c.start()
	steps := map[time.Duration]func(){
		15 * time.Second: func() { c.remove("early", 10) },
		20 * time.Second: func() { c.service.setBroken(true) },
		25 * time.Second: func() {
			c.remove("broken", 30)
			c.create("late", 3)
		},
		30 * time.Second: func() { c.remove("forced", 0) },
		50 * time.Second: func() { c.service.setBroken(false) },
		100 * time.Second: func() {
			c.remove("short", 30)
			c.remove("late", 5)
		},
	}
	restartAfter := time.Duration(0)
	for at := time.Duration(0); at < 6*time.Minute; at += time.Second {
		if step := steps[at]; step != nil {
			step()
		}
		c.sync()
		next := time.After(time.Second)
		if i := slices.IndexFunc(kills, func(kill time.Duration) bool { return kill >= at && kill < at+time.Second }); i >= 0 {
			<-time.After(kills[i] - at)
			c.kill()
			restartAfter = kills[i] + 2*time.Second
		}
		<-next
		if at > restartAfter && c.agent == nil {
			c.start()
		}
	}
	c.kill()
	<-time.After(6 * time.Second) // until every request has arrived
}

// An agent is killed and restarted repeatedly, at random times that are 3 s to 33 s apart. The job service loses
// messages, fails for 30 s and stops jobs late. All the same the agent leaks no job, and reports none as ended too
// early. The last pods are deleted at 100 s, and the last kill comes before 220 s. Each seed is one simulation.
func TestAnAgentThatIsKilledRepeatedlyLeaksNoJob(t *testing.T) {
	seeds := uint64(40)
	if need.Less(t, "32 of 40 agents that are killed repeatedly") {
		seeds = 8
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 26))
		var kills []time.Duration
		for at := time.Duration(random.Int64N(int64(10 * time.Second))); at < 220*time.Second; at += 3*time.Second + time.Duration(random.Int64N(int64(30*time.Second))) {
			kills = append(kills, at)
		}
		requireNoLeak(t, kills...)
	}
}

// requireNoLeak runs the simulation with an agent that is killed at the given times. At the end only the jobs of the
// pods that were never deleted may be left. No job may have been created twice, deleted while it ran, or reported as
// ended while it ran.
func requireNoLeak(t *testing.T, kills ...time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.run(kills...)
		require.Empty(t, c.early, "killed at %v", kills)
		require.Empty(t, c.service.deletedWhileRunning, "killed at %v", kills)
		for uid, job := range c.service.jobs {
			require.True(t, strings.HasPrefix(string(uid), "running") && job.isRunning(), "%s, killed at %v", uid, kills)
		}
		require.Len(t, c.service.jobs, 6, "the running ones; killed at %v", kills)
		for uid, times := range c.service.created {
			require.Equal(t, 1, times, "%s, killed at %v", uid, kills)
		}
		for _, uid := range []types.UID{"short-0", "short-5"} {
			require.True(t, c.ended[uid], "killed at %v", kills)
		}
	})
}
