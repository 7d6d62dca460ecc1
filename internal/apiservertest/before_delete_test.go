package apiservertest

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// strategy is the least that the API server takes for pods.
type strategy struct {
	runtime.ObjectTyper
	graceperiod.PodDeleteStrategy
}

var _ rest.RESTGracefulDeleteStrategy = strategy{}

// answer is all that a delete says and leaves behind.
type answer struct {
	Graceful, Pending bool
	Error             error
	Pod               *v1.Pod
	Options           *metav1.DeleteOptions
}

// upstream deletes copies of pod and options by the API server's code.
func upstream(t *testing.T, pod *v1.Pod, options *metav1.DeleteOptions) answer {
	t.Helper()
	a := answer{Pod: pod.DeepCopy(), Options: options.DeepCopy()}
	a.Graceful, a.Pending, a.Error = rest.BeforeDelete(strategy{ObjectTyper: scheme.Scheme}, t.Context(), a.Pod, a.Options)
	return a
}

// ours deletes copies of pod and options by graceperiod.
func ours(pod *v1.Pod, options *metav1.DeleteOptions) answer {
	a := answer{Pod: pod.DeepCopy(), Options: options.DeepCopy()}
	a.Graceful, a.Pending, a.Error = graceperiod.BeforeDelete(a.Pod, a.Options, time.Now())
	return a
}

// same checks that both give the same answer, to the nanosecond. It is called in a
// bubble, where the clock that the API server reads stands still.
func same(t *testing.T, pod *v1.Pod, options *metav1.DeleteOptions) answer {
	t.Helper()
	want, got := upstream(t, pod, options), ours(pod, options)
	require.Equal(t, want, got, "pod %+v %+v %+v, options %+v", pod.ObjectMeta, pod.Spec, pod.Status, options)
	return got
}

func TestVectors(t *testing.T) {
	all := readVectors(t)
	require.Len(t, all.FirstDelete.Cases, 6)
	require.Len(t, all.RepeatedDelete.Cases, 16)
	for _, c := range all.FirstDelete.Cases {
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pod := &v1.Pod{Spec: v1.PodSpec{NodeName: c.Node, TerminationGracePeriodSeconds: c.TGPS}, Status: v1.PodStatus{Phase: c.Phase}}
				got := same(t, pod, &metav1.DeleteOptions{GracePeriodSeconds: c.Opt})
				require.Equal(t, ptr.To(c.Want), got.Options.GracePeriodSeconds)
				require.Equal(t, ptr.To(c.Want), got.Pod.DeletionGracePeriodSeconds)
			})
		})
	}
	for _, row := range all.RepeatedDelete.Cases {
		synctest.Test(t, func(t *testing.T) {
			pod := &v1.Pod{}
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = ptr.To(metav1.Now()), seconds(row[0])
			got := same(t, pod, &metav1.DeleteOptions{GracePeriodSeconds: seconds(row[1])})
			require.Equal(t, []*int64{seconds(row[2]), seconds(row[3])}, []*int64{got.Pod.DeletionGracePeriodSeconds, got.Options.GracePeriodSeconds})
			require.Equal(t, row[4:], []any{got.Graceful, got.Pending})
		})
	}
}

func TestGenerated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[string]int{}
		generate := newGenerator(1)
		for range 50_000 {
			got := same(t, generate.pod(), generate.options())
			seen[got.kind()]++
			<-time.After(time.Millisecond)
		}
		for _, kind := range []string{"graceful", "pending", "neither", "Conflict", "Invalid"} {
			require.Greater(t, seen[kind], 1000, "the inputs reach every outcome: %v", seen)
		}
	})
}

// kind names the outcome.
func (a answer) kind() string {
	switch {
	case a.Error != nil:
		return string(apierrors.ReasonForError(a.Error))
	case a.Graceful:
		return "graceful"
	case a.Pending:
		return "pending"
	default:
		return "neither"
	}
}

// A pod that is deleted again and again goes the same way in both.
func TestRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		generate := newGenerator(2)
		for range 2_000 {
			pod := generate.pod()
			for range 6 {
				pod = same(t, pod, generate.options()).Pod
				<-time.After(generate.span())
			}
		}
	})
}

// The API server's store turns no options into a grace of 0 before it asks.
func TestNilOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		generate := newGenerator(3)
		for range 2_000 {
			pod := generate.pod()
			want, got := upstream(t, pod, metav1.NewDeleteOptions(0)), ours(pod, nil)
			require.Nil(t, got.Options)
			want.Options = nil
			require.Equal(t, want, got)
		}
	})
}

func TestNoPod(t *testing.T) {
	_, _, want := rest.BeforeDelete(strategy{ObjectTyper: scheme.Scheme}, t.Context(), nil, &metav1.DeleteOptions{})
	_, _, got := graceperiod.BeforeDelete(nil, &metav1.DeleteOptions{}, time.Now())
	require.True(t, apierrors.IsInternalError(want))
	require.True(t, apierrors.IsInternalError(got))
}

// The one place where the two part: past 292 years the API server's sum overflows
// and the pod's end lies in the past.
func TestBeyondTheLongestDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod, options := &v1.Pod{Spec: v1.PodSpec{NodeName: "node-1"}}, metav1.NewDeleteOptions(math.MaxInt64)
		want, got := upstream(t, pod, options), ours(pod, options)
		require.True(t, want.Pod.DeletionTimestamp.Time.Before(time.Now()))
		require.Equal(t, time.Now().Add(math.MaxInt64), got.Pod.DeletionTimestamp.Time)
		want.Pod.DeletionTimestamp = got.Pod.DeletionTimestamp
		require.Equal(t, want, got)
	})
}
