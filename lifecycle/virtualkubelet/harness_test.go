//go:build go1.25

package virtualkubelet_test

import (
	"cmp"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/judge"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
)

const second = time.Second

// stops returns the StopContainer calls so far.
func (b *testbed) stops() (calls []stop) {
	for _, s := range b.rt.Stops() {
		calls = append(calls, stop{s.ID, s.TimeoutSeconds, s.At.Sub(b.began)})
	}
	return calls
}

// sortedStops returns the StopContainer calls so far, sorted by ID and time.
func (b *testbed) sortedStops() []stop {
	return slices.SortedFunc(slices.Values(b.stops()), func(x, y stop) int { return cmp.Or(cmp.Compare(x.id, y.id), cmp.Compare(x.at, y.at)) })
}

// stop is a call of StopContainer.
type stop struct {
	id      string        // POD-UID/CONTAINER
	timeout int64         // seconds
	at      time.Duration // since the beginning of the test
}

// notification is a status that virtual-kubelet was notified of.
type notification struct {
	pod *v1.Pod
	at  time.Duration // since the beginning of the test
}

// testbed is a provider on a scripted runtime in a bubble, with the statuses that it sends.
type testbed struct {
	*testing.T
	*virtualkubelet.Provider

	rt     *scriptedRuntime
	events *lifecycletest.Events
	began  time.Time

	mu       sync.Mutex
	notified []notification
	records  []*judge.Record // one for each provider of the test
}

// inBubble runs a test with a provider in a bubble, where time is exact and every goroutine must end. At the end it
// closes the provider. Then the judge checks all its terminations: a broken promise of package lifecycle fails the
// test even if do does not look for it. change modifies the provider's options.
func inBubble(t *testing.T, do func(*testbed), change ...func(*virtualkubelet.Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &testbed{T: t, rt: newScriptedRuntime(), events: &lifecycletest.Events{}, began: time.Now()}
		b.Provider = b.newProvider(change...)
		defer func() { // also after a failure, which the bubble would hide otherwise
			b.rt.Release()
			require.NoError(t, b.Close(t.Context()))
			for _, record := range b.records {
				require.Empty(t, judge.Terminations(record), record.Story())
			}
		}()
		do(b)
	})
}

// newProvider returns a provider on the testbed's runtime, whose statuses go to notified.
func (b *testbed) newProvider(change ...func(*virtualkubelet.Options)) *virtualkubelet.Provider {
	opts := virtualkubelet.Options{Runtime: b.rt}
	opts.Terminator.Events = b.events
	record := judge.NewRecord()
	b.records = append(b.records, record)
	virtualkubelet.Judged(record)(&opts)
	for _, c := range change {
		c(&opts)
	}
	p, err := virtualkubelet.New(opts)
	require.NoError(b, err)
	p.NotifyPods(b.Context(), func(pod *v1.Pod) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.notified = append(b.notified, notification{pod, b.elapsed()})
	})
	return p
}

// elapsed returns the time since the beginning of the test.
func (b *testbed) elapsed() time.Duration { return time.Since(b.began) }

// lastNotification returns the last pod that virtual-kubelet was notified of, and when.
func (b *testbed) lastNotification() notification {
	b.mu.Lock()
	defer b.mu.Unlock()
	require.NotEmpty(b, b.notified)
	return b.notified[len(b.notified)-1]
}

// lastStatus returns the last status that virtual-kubelet was notified of.
func (b *testbed) lastStatus() v1.PodStatus { return b.lastNotification().pod.Status }

// podsForShutdown returns the pods that a shutdown would kill (Provider.Pods).
func (b *testbed) podsForShutdown() []*v1.Pod {
	pods, err := b.Pods(b.Context())
	require.NoError(b, err)
	return pods
}

// countNotifications returns how often virtual-kubelet was notified of a pod.
func (b *testbed) countNotifications(pod *v1.Pod) (times int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, news := range b.notified {
		if news.pod.UID == pod.UID {
			times++
		}
	}
	return times
}

// create calls CreatePod and waits until nothing more happens without a passage of time. A start that takes no time has
// then ended.
func (b *testbed) create(pod *v1.Pod) {
	require.NoError(b, b.CreatePod(b.Context(), pod))
	synctest.Wait()
}

// deleteWithGrace calls DeletePod with the pod as the API server has it after a deletion, with a grace period in seconds.
func (b *testbed) deleteWithGrace(pod *v1.Pod, seconds int64) {
	require.NoError(b, b.DeletePod(b.Context(), deleted(pod, seconds, time.Now())))
}

// wait advances the time of the bubble and waits until all goroutines are blocked.
func wait(d time.Duration) {
	<-times.After(time.Now().Add(d)) // a random d may be 0
	synctest.Wait()
}
