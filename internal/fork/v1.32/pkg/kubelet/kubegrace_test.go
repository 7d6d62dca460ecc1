package kubelet

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/kubegrace/kubegrace/shutdown/podkiller"

	"k8s.io/kubernetes/pkg/kubelet/kubegrace"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	"k8s.io/kubernetes/pkg/vectors"
)

// notBegun is the grace period in the status of a pod whose termination has not begun.
const notBegun = 0

// effectiveGracePeriod calls calculateEffectiveGracePeriod for a kill of a pod whose termination has begun with a grace
// period in seconds, or has notBegun.
func effectiveGracePeriod(begunWith int64, pod *v1.Pod, override *int64) (seconds int64, shortened bool) {
	return calculateEffectiveGracePeriod(&podSyncStatus{gracePeriod: begunWith}, pod, &KillPodOptions{PodTerminationGracePeriodSecondsOverride: override})
}

// The cases of the kubelet's Test_calculateEffectiveGracePeriod: the grace period of a kill of a pod whose termination has not
// begun. If the termination has begun with 1 s more than that, a kill whose override is that grace period shortens it.
func TestEffectiveGracePeriodVectors(t *testing.T) {
	vectors.SetGate(t, kubegrace.Termination, true)
	cases := vectors.Read[struct {
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
			got, shortened := effectiveGracePeriod(notBegun, pod, c.Override)
			require.Equal(t, c.Want, got)
			require.False(t, shortened)

			begunWith := c.Want + 1
			got, shortened = effectiveGracePeriod(begunWith, pod, &c.Want)
			require.Equal(t, c.Want, got)
			require.True(t, shortened)
		})
	}
}

// A pod without any grace period is killed without options. It has the minimum of 1 s.
func TestAPodWithoutAGracePeriodHasTheMinimum(t *testing.T) {
	vectors.SetGate(t, kubegrace.Termination, true)
	var noOptions *KillPodOptions
	got, _ := calculateEffectiveGracePeriod(&podSyncStatus{}, &v1.Pod{}, noOptions)
	require.EqualValues(t, 1, got)
}

// A pod was deleted with a grace period of 0, which the kubelet treats as unset. So an override of 60 s applies. But it
// cannot extend a termination that has begun with 1 s.
func TestAnOverrideAppliesAfterAForcedDeletion(t *testing.T) {
	vectors.SetGate(t, kubegrace.Termination, true)
	pod := &v1.Pod{}
	pod.DeletionGracePeriodSeconds = vectors.Seconds(0)
	override := vectors.Seconds(60)
	got, _ := effectiveGracePeriod(notBegun, pod, override)
	require.EqualValues(t, 60, got)

	const begunWith = 1
	got, _ = effectiveGracePeriod(begunWith, pod, override)
	require.EqualValues(t, 1, got)
}

// scriptedWorkers are pod workers that complete each kill after a delay, or never if the delay is negative.
type scriptedWorkers struct {
	delay   time.Duration
	updates []UpdatePodOptions
}

// update records the update, and completes its kill after the delay.
func (w *scriptedWorkers) update(options UpdatePodOptions) {
	w.updates = append(w.updates, options)
	if w.delay >= 0 {
		time.AfterFunc(w.delay, func() { close(options.KillPodOptions.CompletedCh) })
	}
}

// As in the kubelet's TestKillPodNowNoTimeout, a kill with a grace period of 10 s takes 14 s and succeeds, because its
// timeout is one and a half times the grace period: 15 s. The pod workers get the options of the kill.
func TestKillPodNowPassesItsOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events, w := record.NewFakeRecorder(1), &scriptedWorkers{delay: 14 * time.Second}
		pod := &v1.Pod{}
		const isEviction = true
		isStatusFuncCalled := false
		require.NoError(t, killNow(t, w, events)(pod, isEviction, vectors.Seconds(10), func(*v1.PodStatus) { isStatusFuncCalled = true }))
		require.Empty(t, vectors.Events(events), "no event says that the kill took too long")

		update := w.updates[0]
		require.Same(t, pod, update.Pod)
		require.Equal(t, kubetypes.SyncPodKill, update.UpdateType)
		require.True(t, update.KillPodOptions.Evict)
		require.Equal(t, vectors.Seconds(10), update.KillPodOptions.PodTerminationGracePeriodSecondsOverride)
		update.KillPodOptions.PodStatusFunc(nil)
		require.True(t, isStatusFuncCalled)
	})
}

// noStatusFunc is the PodStatusFunc of a kill that leaves the pod's status as it is.
func noStatusFunc() func(*v1.PodStatus) { return nil }

// A kill never ends. It times out after one and a half times the override, or the pod's grace period if there is no
// override, and after at least 10 s: 1.5 * 10 s = 15 s, 1.5 * 60 s = 90 s, and 10 s for a pod that has neither. The pod
// workers get the override unchanged.
func TestKillPodNowHasTheKubeletsTimeouts(t *testing.T) {
	for want, graces := range map[time.Duration]struct{ spec, override *int64 }{
		10 * time.Second: {},
		15 * time.Second: {override: vectors.Seconds(10), spec: vectors.Seconds(60)},
		90 * time.Second: {spec: vectors.Seconds(60)},
	} {
		t.Run(want.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events, w, began := record.NewFakeRecorder(1), &scriptedWorkers{delay: -1}, time.Now()
				pod := &v1.Pod{Spec: v1.PodSpec{TerminationGracePeriodSeconds: graces.spec}}
				const isEviction = false
				err := killNow(t, w, events)(pod, isEviction, graces.override, noStatusFunc())
				synctest.Wait()
				require.EqualError(t, err, "timeout waiting to kill pod")
				require.Equal(t, want, time.Since(began))
				require.Equal(t, []string{"Warning ExceededGracePeriod Container runtime did not kill the pod within specified grace period."}, vectors.Events(events))

				kill := w.updates[0].KillPodOptions
				require.Equal(t, graces.override, kill.PodTerminationGracePeriodSecondsOverride)
				close(kill.CompletedCh) // ends the goroutine that waits for the kill
			})
		})
	}
}

// A kill takes 25 s. With its grace period of 1 s it has the shortest timeout, 10 s. It continues after the timeout. With
// the error that the call returned, the shutdown manager can wait for the end of the kill.
func TestAKillThatTimedOutCanBeAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &scriptedWorkers{delay: 25 * time.Second}
		began := time.Now()
		const isEviction = false
		var noEvents record.EventRecorder
		err := killNow(t, w, noEvents)(&v1.Pod{}, isEviction, vectors.Seconds(1), noStatusFunc())
		var overdue *podkiller.OverdueError
		require.ErrorAs(t, err, &overdue)
		require.Equal(t, 10*time.Second, time.Since(began))

		_, err = overdue.Await(t.Context())
		require.NoError(t, err)
		require.Equal(t, 25*time.Second, time.Since(began), "the kill has ended")
	})
}
