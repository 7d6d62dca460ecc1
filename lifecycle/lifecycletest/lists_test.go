//go:build go1.25

package lifecycletest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// Running lists the running containers of a pod, each with the time at which its run began: no container that has exited or was
// removed, and none of another pod. A container that is started again with its old ID is another run.
func TestRunningListsRunningContainers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := lifecycletest.NewRuntime()
		requireListed := func(want ...lifecycle.Container) {
			running, err := rt.Running(t.Context(), pod)
			require.NoError(t, err)
			require.ElementsMatch(t, want, running)
		}
		rt.Start(pod, "app", "exits", lifecycletest.Script{ExitAfter: second})
		rt.Start(&v1.Pod{}, "other", "of-another-pod", lifecycletest.Script{})
		web := rt.Start(pod, "web", "w1", lifecycletest.Script{})
		require.Equal(t, lifecycle.Container{Name: "web", ID: "w1", Began: time.Now()}, web)
		<-time.After(2 * second)
		requireListed(web)

		webAgain := rt.Start(pod, "web", "w1", lifecycletest.Script{})
		require.NotEqual(t, web, webAgain)
		requireListed(webAgain)

		rt.Remove("w1")
		rt.Remove("w1") // has no effect
		requireListed()
	})
}

// Running of a nil pod is an error.
func TestRunningOfANilPod(t *testing.T) {
	_, err := lifecycletest.NewRuntime().Running(t.Context(), nil)
	require.ErrorContains(t, err, "the pod is nil")
}

// Running is called for a pod with the containers web and app, with a context that ends after 10 s. Lists says when the list is
// taken, and when Running returns. app exits after 1 s, so only a list that is taken before that has it.
func TestRunningFollowsLists(t *testing.T) {
	broken := errors.New("broken pipe")
	for name, test := range map[string]struct {
		lists   lifecycletest.Lists
		isAway  bool          // the runtime is unavailable
		release time.Duration // when Release is called; 0: it is not
		took    time.Duration // how long Running takes; zero: it returns at once
		want    []string      // the IDs that are listed
		err     error
	}{
		"zero value":                   {want: []string{"web", "app"}},
		"poll":                         {lists: lifecycletest.Lists{Poll: 5 * second}, took: 5 * second, want: []string{"web"}},
		"takes 5 s":                    {lists: lifecycletest.Lists{Takes: 5 * second}, took: 5 * second, want: []string{"web", "app"}},
		"context ends before the poll": {lists: lifecycletest.Lists{Poll: 30 * second}, took: 10 * second, err: context.DeadlineExceeded},
		"lacks web":                    {lists: lifecycletest.Lists{Lacks: []string{"web"}}, want: []string{"app"}},
		"also lists ended":             {lists: lifecycletest.Lists{Poll: 5 * second, HasEnded: true}, took: 5 * second, want: []string{"web", "app"}},
		"error":                        {lists: lifecycletest.Lists{Err: broken}, err: broken},
		"hangs until its context ends": {lists: lifecycletest.Lists{Hang: true}, took: 10 * second, err: context.DeadlineExceeded},
		"hangs until Release":          {lists: lifecycletest.Lists{Hang: true}, release: 5 * second, took: 5 * second, err: lifecycletest.ErrScripted},
		"unavailable":                  {isAway: true, err: lifecycletest.ErrAway},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := lifecycletest.NewRuntime()
				rt.Start(pod, "web", "web", lifecycletest.Script{})
				rt.Start(pod, "app", "app", lifecycletest.Script{ExitAfter: second})
				rt.SetLists(test.lists)
				if test.isAway {
					rt.Away(0, second) // from now on
				}
				if test.release > 0 {
					time.AfterFunc(test.release, rt.Release)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*second)
				defer cancel()
				began := time.Now()
				running, err := rt.Running(ctx, pod)
				require.ErrorIs(t, err, test.err)
				require.Equal(t, test.took, time.Since(began))
				var ids []string
				for _, c := range running {
					ids = append(ids, c.ID)
				}
				require.Equal(t, test.want, ids)
			})
		})
	}
}
