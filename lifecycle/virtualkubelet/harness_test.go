package virtualkubelet_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
)

const second = time.Second

// stops are the StopContainer calls so far, as ID and timeout, with their moments.
func (b *bed) stops() (asked []stop) {
	for _, s := range b.rt.Stops() {
		asked = append(asked, stop{s.ID, s.TimeoutSeconds, s.At.Sub(b.began)})
	}
	return asked
}

type stop struct {
	id      string
	timeout int64
	at      time.Duration
}

// news is one status that virtual-kubelet was told.
type news struct {
	pod *v1.Pod
	at  time.Duration
}

// bed is a provider on a played runtime, in a bubble, and what it says.
type bed struct {
	*testing.T
	*virtualkubelet.Provider

	rt     *played
	events *lifecycletest.Events
	began  time.Time

	mu    sync.Mutex
	heard []news
}

// inBubble runs a test where time is exact and every goroutine must end.
func inBubble(t *testing.T, do func(*bed), change ...func(*virtualkubelet.Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{T: t, rt: newPlayed(), events: &lifecycletest.Events{}, began: time.Now()}
		b.Provider = b.provider(change...)
		defer func() { // after a failure, too, or the bubble would hide it
			b.rt.Release()
			require.NoError(t, b.Close(t.Context()))
		}()
		do(b)
	})
}

// provider makes a provider whose statuses the bed hears.
func (b *bed) provider(change ...func(*virtualkubelet.Options)) *virtualkubelet.Provider {
	opts := virtualkubelet.Options{Runtime: b.rt}
	opts.Terminator.Events = b.events
	for _, c := range change {
		c(&opts)
	}
	p, err := virtualkubelet.New(opts)
	require.NoError(b, err)
	p.NotifyPods(b.Context(), func(pod *v1.Pod) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.heard = append(b.heard, news{pod, b.at()})
	})
	return p
}

func (b *bed) at() time.Duration { return time.Since(b.began) }

// last is the last that virtual-kubelet was told.
func (b *bed) last() news {
	b.mu.Lock()
	defer b.mu.Unlock()
	require.NotEmpty(b, b.heard)
	return b.heard[len(b.heard)-1]
}

// told is how often virtual-kubelet was told of a pod.
func (b *bed) told(pod *v1.Pod) (times int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, news := range b.heard {
		if news.pod.UID == pod.UID {
			times++
		}
	}
	return times
}

// create makes the provider take a pod and waits until its start has settled.
func (b *bed) create(pod *v1.Pod) {
	require.NoError(b, b.CreatePod(b.Context(), pod))
	synctest.Wait()
}

// remove deletes a pod as the API server would, with a grace in seconds.
func (b *bed) remove(pod *v1.Pod, seconds int64) {
	require.NoError(b, b.DeletePod(b.Context(), deleted(pod, seconds, time.Now())))
}

// wait lets virtual time pass, and what comes of it.
func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
