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

	"github.com/kubegrace/kubegrace/graceperiod"
)

// strategy has the methods that the API server needs to delete pods, and no others.
type strategy struct {
	runtime.ObjectTyper
	graceperiod.PodDeleteStrategy
}

var _ rest.RESTGracefulDeleteStrategy = strategy{}

// deleteResult is the result of a delete, with the pod and options after it.
type deleteResult struct {
	Graceful, Pending bool
	Error             error
	Pod               *v1.Pod
	Options           *metav1.DeleteOptions
}

// deleteUpstream deletes a copy of a pod with the API server's code. The API server's store replaces nil options with a
// grace period of 0 before it calls that code. graceperiod takes nil itself.
func deleteUpstream(t *testing.T, pod *v1.Pod, options *metav1.DeleteOptions) deleteResult {
	t.Helper()
	result := deleteResult{Pod: pod.DeepCopy(), Options: options.DeepCopy()}
	given := result.Options
	if given == nil {
		given = metav1.NewDeleteOptions(0)
	}
	result.Graceful, result.Pending, result.Error = rest.BeforeDelete(strategy{ObjectTyper: scheme.Scheme}, t.Context(), result.Pod, given)
	return result
}

// deleteWithGraceperiod deletes a copy of a pod with package graceperiod.
func deleteWithGraceperiod(pod *v1.Pod, options *metav1.DeleteOptions) deleteResult {
	result := deleteResult{Pod: pod.DeepCopy(), Options: options.DeepCopy()}
	result.Graceful, result.Pending, result.Error = graceperiod.BeforeDelete(result.Pod, result.Options, time.Now())
	return result
}

// requireSame requires that the API server's code and package graceperiod delete the pod with the same result, and
// returns the result. It must be called in a synctest bubble, where the API server's clock stands still.
func requireSame(t *testing.T, pod *v1.Pod, options *metav1.DeleteOptions) deleteResult {
	t.Helper()
	want, got := deleteUpstream(t, pod, options), deleteWithGraceperiod(pod, options)
	require.Equal(t, want, got, "pod %+v %+v %+v, options %+v", pod.ObjectMeta, pod.Spec, pod.Status, options)
	return got
}

// 10,000 random pods are deleted six times each, with random options and pauses. Each delete has the same result in the
// API server's code and in package graceperiod. Each kind of result comes often.
func TestRandomDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[string]int{}
		generate := newGenerator(1)
		for range 10_000 {
			pod := generate.pod()
			for range 6 {
				got := requireSame(t, pod, generate.options())
				seen[got.kind()]++
				pod = got.Pod
				<-time.After(generate.span())
			}
		}
		for _, kind := range []string{"graceful", "pending", "neither", "Conflict", "Invalid"} {
			require.Greater(t, seen[kind], 1000, "the inputs reach every outcome: %v", seen)
		}
	})
}

// kind returns the reason of the result's error, or whether the delete is graceful or pending or neither.
func (r deleteResult) kind() string {
	switch {
	case r.Error != nil:
		return string(apierrors.ReasonForError(r.Error))
	case r.Graceful:
		return "graceful"
	case r.Pending:
		return "pending"
	default:
		return "neither"
	}
}

// Without a pod, the API server's code and package graceperiod return an internal error.
func TestANilPodIsAnInternalError(t *testing.T) {
	_, _, want := rest.BeforeDelete(strategy{ObjectTyper: scheme.Scheme}, t.Context(), nil, &metav1.DeleteOptions{})
	_, _, got := graceperiod.BeforeDelete(nil, &metav1.DeleteOptions{}, time.Now())
	require.True(t, apierrors.IsInternalError(want))
	require.True(t, apierrors.IsInternalError(got))
}

// A grace period is longer than the longest time.Duration, which is 292 years. Only then do the two results differ: the
// API server's deletionTimestamp overflows and is in the past, and that of package graceperiod is 292 years from now.
func TestGracePeriodsBeyondTheLongestDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod, options := &v1.Pod{Spec: v1.PodSpec{NodeName: "node-1"}}, metav1.NewDeleteOptions(math.MaxInt64)
		want, got := deleteUpstream(t, pod, options), deleteWithGraceperiod(pod, options)
		require.True(t, want.Pod.DeletionTimestamp.Time.Before(time.Now()))
		require.Equal(t, time.Now().Add(math.MaxInt64), got.Pod.DeletionTimestamp.Time)
		want.Pod.DeletionTimestamp = got.Pod.DeletionTimestamp
		require.Equal(t, want, got)
	})
}
