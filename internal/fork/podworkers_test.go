//go:build go1.25

package fork

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/kubegrace/kubegrace/shutdown/podkiller"
)

// The kubelet's Test_calculateEffectiveGracePeriod.
func TestEffectiveGracePeriodVectors(t *testing.T) {
	cases := readVectors[struct {
		Pod struct {
			Cases []struct {
				Name                     string
				Spec, Deletion, Override *int64
				Want                     int64
			}
		} `json:"effective_grace_period"`
	}](t, "graceperiod/testdata/vectors.yaml").Pod.Cases
	require.Len(t, cases, 5)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			pod := &v1.Pod{Spec: v1.PodSpec{TerminationGracePeriodSeconds: c.Spec}}
			pod.DeletionGracePeriodSeconds = c.Deletion
			got, shortened := calculateEffectiveGracePeriod(&podSyncStatus{}, pod, &KillPodOptions{PodTerminationGracePeriodSecondsOverride: c.Override})
			require.Equal(t, c.Want, got)
			require.False(t, shortened)
			got, shortened = calculateEffectiveGracePeriod(&podSyncStatus{gracePeriod: c.Want + 1}, pod, &KillPodOptions{PodTerminationGracePeriodSecondsOverride: &c.Want})
			require.Equal(t, c.Want, got)
			require.True(t, shortened)
		})
	}
	got, _ := calculateEffectiveGracePeriod(&podSyncStatus{}, &v1.Pod{}, nil)
	require.EqualValues(t, 1, got)
}

// scriptedWorkers ends each pod after a while, or never if that is negative.
type scriptedWorkers struct {
	take    time.Duration
	updates []UpdatePodOptions
}

func (w *scriptedWorkers) UpdatePod(options UpdatePodOptions) {
	w.updates = append(w.updates, options)
	if w.take >= 0 {
		time.AfterFunc(w.take, func() { close(options.KillPodOptions.CompletedCh) })
	}
}

// The kubelet's TestKillPodNowNoTimeout: the pod workers get the options of the kill.
func TestKillPodNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events, w := record.NewFakeRecorder(1), &scriptedWorkers{take: 14 * time.Second}
		pod := &v1.Pod{}
		marked := false
		require.NoError(t, killPodNow(t.Context(), w, events)(pod, true, seconds(10), func(*v1.PodStatus) { marked = true }))
		require.Empty(t, recordedEvents(events))
		update := w.updates[0]
		require.Same(t, pod, update.Pod)
		require.Equal(t, SyncPodKill, update.UpdateType)
		require.True(t, update.KillPodOptions.Evict)
		require.Equal(t, seconds(10), update.KillPodOptions.PodTerminationGracePeriodSecondsOverride)
		update.KillPodOptions.PodStatusFunc(nil)
		require.True(t, marked)
	})
}

// The kubelet's timeouts: one and a half times the override, else the pod's own, 10 s at least.
func TestKillPodNowTimesOut(t *testing.T) {
	for want, graces := range map[time.Duration]struct{ spec, override *int64 }{
		10 * time.Second: {},
		15 * time.Second: {override: seconds(10), spec: seconds(60)},
		90 * time.Second: {spec: seconds(60)},
	} {
		synctest.Test(t, func(t *testing.T) {
			events, w, began := record.NewFakeRecorder(1), &scriptedWorkers{take: -1}, time.Now()
			pod := &v1.Pod{Spec: v1.PodSpec{TerminationGracePeriodSeconds: graces.spec}}
			err := killPodNow(t.Context(), w, events)(pod, false, graces.override, nil)
			synctest.Wait()
			require.EqualError(t, err, "timeout waiting to kill pod")
			require.Equal(t, want, time.Since(began))
			require.Equal(t, []string{"Warning ExceededGracePeriod Container runtime did not kill the pod within specified grace period."}, recordedEvents(events))
			require.Equal(t, graces.override, w.updates[0].KillPodOptions.PodTerminationGracePeriodSecondsOverride)
			close(w.updates[0].KillPodOptions.CompletedCh)
		})
	}
}

// A kill that has timed out goes on. A caller can wait for it through the error, as the shutdown
// manager does.
func TestKillPodNowGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &scriptedWorkers{take: 25 * time.Second}
		began := time.Now()
		err := killPodNow(t.Context(), w, nil)(&v1.Pod{}, false, seconds(1), nil)
		var overdue *podkiller.OverdueError
		require.ErrorAs(t, err, &overdue)
		require.Equal(t, 10*time.Second, time.Since(began))
		_, err = overdue.Await(t.Context())
		require.NoError(t, err)
		require.Equal(t, 25*time.Second, time.Since(began))
	})
}

// A shortened grace period applies at once to a kill that is under way.
func TestShortenGracePeriod(t *testing.T) {
	onNode(t, 600, func(t *testing.T, n *node) {
		n.addMain("app", script{takes: time.Hour})
		began := time.Now()
		time.AfterFunc(5*time.Second, func() { shortenGracePeriod(n.terminator, n.pod, 1) })
		require.NoError(t, errorOf(n.killPodWithSyncResult(t.Context(), n.pod, n.running, nil)))
		require.Less(t, time.Since(began), 10*time.Second)
		shortenGracePeriod(n.terminator, &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "another"}}, 1)
	})
}
