//go:build go1.25

package podkiller_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// Each kind of eviction has its grace period, for a pod whose spec has 40 s. SetStatus makes the pod Failed
// with the kubelet's reason and condition, whatever its phase was. A pod that exceeds its limit of local storage gets no
// DisruptionTarget condition.
func TestEvictionRequestsHaveTheKubeletsGracePeriodAndStatus(t *testing.T) {
	pod := webPod(40)
	disruption := []v1.PodCondition{{Type: "DisruptionTarget", Status: "True", Reason: "TerminationByKubelet", Message: "low"}}
	for _, test := range []struct {
		name       string
		req        shutdown.KillRequest
		want       int64
		conditions []v1.PodCondition
	}{
		{name: "hard", req: podkiller.HardEviction("low"), want: 1, conditions: disruption},
		{name: "soft, maximum", req: podkiller.SoftEviction(pod, 20, "low"), want: 20, conditions: disruption},
		{name: "soft, shorter spec", req: podkiller.SoftEviction(pod, 60, "low"), want: 40, conditions: disruption},
		{name: "soft, no maximum", req: podkiller.SoftEviction(pod, -1, "low"), want: 40, conditions: disruption},
		{name: "soft, maximum of 0", req: podkiller.SoftEviction(pod, 0, "low"), want: 0, conditions: disruption},
		{name: "local storage", req: podkiller.LocalStorageEviction("low"), want: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, *test.req.GracePeriodSeconds)
			require.True(t, test.req.Evict)
			for _, phase := range []v1.PodPhase{v1.PodRunning, v1.PodSucceeded} {
				status := v1.PodStatus{Phase: phase}
				test.req.SetStatus(&status)
				for i := range status.Conditions {
					require.False(t, status.Conditions[i].LastTransitionTime.IsZero())
					status.Conditions[i].LastTransitionTime = metav1.Time{}
				}
				require.Equal(t, v1.PodStatus{Phase: v1.PodFailed, Reason: "Evicted", Message: "low", Conditions: test.conditions}, status)
			}
		})
	}
}

// Static pods, mirror pods and critical pods (priority 2000000000 and above) must not be evicted.
func TestStaticMirrorAndCriticalPodsAreNotEvictable(t *testing.T) {
	const graceSeconds = 5 // which does not matter here
	static := shutdowntest.Pod("static", 0, graceSeconds)
	static.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	mirror := shutdowntest.Pod("etcd", 0, graceSeconds)
	mirror.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "hash"}
	for _, test := range []struct {
		name string
		pod  *v1.Pod
		want bool
	}{
		{name: "default", pod: shutdowntest.Pod("web", 1000, graceSeconds), want: true},
		{name: "no priority", pod: &v1.Pod{}, want: true},
		{name: "below critical", pod: shutdowntest.Pod("web", 1999999999, graceSeconds), want: true},
		{name: "critical", pod: shutdowntest.Pod("dns", 2000000000, graceSeconds)},
		{name: "static", pod: static},
		{name: "mirror", pod: mirror},
		{name: "nil", pod: nil},
	} {
		require.Equal(t, test.want, podkiller.Evictable(test.pod), test.name)
	}
}

// withTimedKiller runs a test in a bubble, with a timed killer k around the killer inner. how is the behaviour of inner, and
// events has the events that k records.
func withTimedKiller(t *testing.T, how shutdowntest.Behaviour, test func(t *testing.T, k *podkiller.TimedKiller, inner *shutdowntest.Killer, events *recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		inner, events := &shutdowntest.Killer{Default: how}, &recorder{}
		k := podkiller.Timed(inner, events)
		test(t, k, inner, events)
		k.Wait()
	})
}

// The kill takes 3 s of its timeout of 30 s, one and a half times its grace period of 20 s. Its result and error are
// passed on, and no event is recorded.
func TestAKillWithinItsTimeoutReturnsItsResult(t *testing.T) {
	failed := errors.New("no")
	withTimedKiller(t, shutdowntest.Behaviour{Takes: 3 * time.Second, Err: failed}, func(t *testing.T, k *podkiller.TimedKiller, _ *shutdowntest.Killer, events *recorder) {
		began := time.Now()
		result, err := k.KillPod(t.Context(), webPod(60), podkiller.SoftEviction(webPod(60), 20, "low"))
		require.ErrorIs(t, err, failed)
		require.Equal(t, "Graceful", result.Outcome)
		require.Equal(t, 3*time.Second, time.Since(began))
		require.Empty(t, events.all())
	})
}

// The kill and the event recorder hang. KillPod returns at its timeout all the same: 10 s, the shortest one, because a hard
// eviction has a grace period of 1 s.
func TestARecorderThatHangsDelaysNoKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, events := &shutdowntest.Killer{Default: shutdowntest.Behaviour{Hangs: true}}, hangingRecorder(make(chan struct{}))
		k := podkiller.Timed(inner, events)
		began := time.Now()
		_, err := k.KillPod(t.Context(), webPod(60), podkiller.HardEviction("low"))
		require.EqualError(t, err, "timeout waiting to kill pod")
		require.Equal(t, 10*time.Second, time.Since(began))
		inner.Release()
		close(events)
		k.Wait()
	})
}

// hangingRecorder is an event recorder that hangs until it is closed.
type hangingRecorder chan struct{}

// Event hangs.
func (h hangingRecorder) Event(runtime.Object, string, string, string) { <-h }

// The kill hangs. KillPod returns an OverdueError after the kubelet's timeout: the grace period and half of it, in
// whole seconds (21 s + 10 s = 31 s), and at least 10 s. The kill continues, and Await returns its result.
func TestAKillThatExceedsItsTimeoutContinues(t *testing.T) {
	for seconds, wantTimeout := range map[int64]time.Duration{0: 10 * time.Second, 1: 10 * time.Second, 20: 30 * time.Second, 21: 31 * time.Second} {
		t.Run("grace="+strconv.FormatInt(seconds, 10)+"s", func(t *testing.T) {
			withTimedKiller(t, shutdowntest.Behaviour{Hangs: true}, func(t *testing.T, k *podkiller.TimedKiller, inner *shutdowntest.Killer, events *recorder) {
				began := time.Now()
				_, err := k.KillPod(t.Context(), webPod(60), shutdown.KillRequest{GracePeriodSeconds: &seconds})
				require.Equal(t, wantTimeout, time.Since(began))
				var overdue *podkiller.OverdueError
				require.ErrorAs(t, err, &overdue)
				require.EqualError(t, err, "timeout waiting to kill pod")
				synctest.Wait() // for the event
				require.Equal(t, []string{"Warning ExceededGracePeriod Container runtime did not kill the pod within specified grace period."}, events.all())
				kill, _ := inner.Kill("web")
				require.True(t, kill.Ended.IsZero(), "the kill continues")

				inner.Release()
				result, err := overdue.Await(t.Context())
				require.NoError(t, err)
				require.Equal(t, "GraceExceeded", result.Outcome)
			})
		})
	}
}

// The killer panics. KillPod returns an error that names the pod and the value of the panic.
func TestAPanicOfTheKillerIsAnError(t *testing.T) {
	k := podkiller.Timed(shutdown.PodKillerFunc(func(context.Context, *v1.Pod, shutdown.KillRequest) (shutdown.KillResult, error) {
		panic("no sandbox")
	}), nil) // nil: no events are recorded
	_, err := k.KillPod(t.Context(), webPod(60), shutdown.KillRequest{})
	require.EqualError(t, err, "the killer of pod default/web panicked: no sandbox")
}

// The context ends after 1 s, and the killer ignores its context and returns after an hour. KillPod returns after 1 s, with
// the cause of the context and without an event. Wait waits for the killer.
func TestKillPodReturnsWhenItsContextEnds(t *testing.T) {
	withTimedKiller(t, shutdowntest.Behaviour{Hangs: true, IgnoresContext: true}, func(t *testing.T, k *podkiller.TimedKiller, inner *shutdowntest.Killer, events *recorder) {
		defer inner.Release()
		began := time.Now()
		time.AfterFunc(time.Hour, inner.Release)
		ctx, stop := context.WithCancelCause(t.Context())
		reason := errors.New("the agent ends")
		time.AfterFunc(time.Second, func() { stop(reason) })
		_, err := k.KillPod(ctx, webPod(60), podkiller.HardEviction("low"))
		require.ErrorIs(t, err, reason)
		require.Empty(t, events.all(), "no event")
		require.Equal(t, time.Second, time.Since(began))
		k.Wait()
		require.Equal(t, time.Hour, time.Since(began))
	})
}

// recorder records events as text.
type recorder struct {
	mu     sync.Mutex
	events []string
}

// Event records an event as "TYPE REASON MESSAGE".
func (r *recorder) Event(_ runtime.Object, eventtype, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, eventtype+" "+reason+" "+message)
}

// all returns the events so far.
func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}
