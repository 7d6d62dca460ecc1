//go:build go1.25

package podkiller_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// statusOf returns a status with the named containers as they are in the runtime; the
// other container is waiting.
func statusOf(rt *lifecycletest.Runtime, names ...string) *v1.PodStatus {
	status := &v1.PodStatus{Phase: v1.PodRunning}
	for _, name := range []string{"web", "log"} {
		c := v1.ContainerStatus{Name: name, ContainerID: "cri://" + name, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}
		if code, exited := rt.ExitCode(name); exited {
			c.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code}}
		}
		if !slices.Contains(names, name) {
			c.State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}
		}
		status.ContainerStatuses = append(status.ContainerStatuses, c)
	}
	return status
}

// The runtime has the containers web and log, which end with the codes 3 and 4.
func TestWhichContainersAreStopped(t *testing.T) {
	type (
		lists    = func(context.Context, *v1.Pod) []lifecycle.Container
		statuses = func(*lifecycletest.Runtime) *v1.PodStatus
	)
	list := func(names ...string) lists {
		containers := []lifecycle.Container{}
		for _, name := range names {
			containers = append(containers, lifecycle.Container{Name: name, ID: name})
		}
		return func(context.Context, *v1.Pod) []lifecycle.Container { return containers }
	}
	silent := func(context.Context, *v1.Pod) []lifecycle.Container { return nil }
	of := func(names ...string) statuses {
		return func(rt *lifecycletest.Runtime) *v1.PodStatus { return statusOf(rt, names...) }
	}
	nothing := func(*lifecycletest.Runtime) *v1.PodStatus { return nil }

	for name, test := range map[string]struct {
		containers lists
		complete   bool
		status     statuses // of the options
		own        statuses // of the pod
		started    string   // by the terminator's Start

		stops []string
		codes []int32 // in the final status; nil: none is given
		asked int     // how often for the status
		err   error
	}{
		"the pod's status":             {own: of("web"), stops: []string{"web"}},
		"the status of the options":    {own: of("web"), status: of("log"), stops: []string{"log"}, codes: []int32{-1, 4}, asked: 2},
		"a status that nobody has":     {own: of("web"), status: nothing, stops: []string{"web"}, asked: 2},
		"a list":                       {own: of("web"), containers: list("log"), stops: []string{"log", "web"}},
		"a list that is all":           {own: of("web"), containers: list("log"), complete: true, stops: []string{"log"}},
		"a list, then the status":      {containers: list("web"), status: of("web", "log"), stops: []string{"web"}, codes: []int32{3, -1}, asked: 1},
		"an empty list":                {own: of("web"), containers: list(), stops: []string{"web"}},
		"an empty list that is all":    {own: of("web"), containers: list(), complete: true},
		"nothing runs, says the agent": {own: of("web"), status: of("web"), complete: true, codes: []int32{-1, -1}, asked: 1},
		"an empty list and a start":    {own: of("web"), containers: list(), complete: true, started: "log", stops: []string{"log"}},
		"a list that is not known":     {own: of("web", "log"), containers: silent, stops: []string{"log", "web"}},
		"neither is known":             {containers: silent, err: lifecycle.ErrUnknownContainers},
		"the options' status says all": {containers: silent, status: of("web", "log"), stops: []string{"log", "web"}, codes: []int32{3, 4}, asked: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := lifecycletest.NewRuntime()
				rt.Start("web", lifecycletest.Script{ExitCode: 3})
				rt.Start("log", lifecycletest.Script{ExitCode: 4})
				terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: rt})
				require.NoError(t, err)
				pod := shutdowntest.Pod("pod", 0, 30)
				pod.Spec.Containers = []v1.Container{{Name: "web"}, {Name: "log"}}
				if test.own != nil {
					pod.Status = *test.own(rt)
				}
				if test.started != "" {
					require.NoError(t, terminator.Pod(pod).Start(t.Context(), test.started, func(context.Context) (string, error) { return test.started, nil }))
				}
				asked := 0
				opts := podkiller.Options{Containers: test.containers, Complete: test.complete}
				if test.status != nil {
					opts.Status = func(context.Context, *v1.Pod) *v1.PodStatus {
						asked++
						return test.status(rt)
					}
				}
				result, err := podkiller.New(terminator, opts).KillPod(t.Context(), pod, podkiller.LocalStorageEviction("too large"))
				require.ErrorIs(t, err, test.err)
				var stops []string
				for _, stop := range rt.Stops() {
					stops = append(stops, stop.ID)
				}
				slices.Sort(stops)
				require.Equal(t, test.stops, stops)
				require.Equal(t, test.asked, asked)
				require.Equal(t, test.codes, codesOf(result.Status))
				if result.Status != nil {
					require.Equal(t, "too large", result.Status.Message)
				}
				rt.Release()
				require.NoError(t, terminator.Close(t.Context()))
			})
		})
	}
}

// codesOf returns the exit codes in a status, -1 for a container without one.
func codesOf(status *v1.PodStatus) (codes []int32) {
	if status == nil {
		return nil
	}
	for _, c := range status.ContainerStatuses {
		if c.State.Terminated == nil {
			codes = append(codes, -1)
		} else {
			codes = append(codes, c.State.Terminated.ExitCode)
		}
	}
	return codes
}

// The functions of Options are called with the context of the kill, and their results are
// not modified.
func TestTheFunctionsHaveTheContextOfTheKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		rt := lifecycletest.NewRuntime()
		rt.Start("web", lifecycletest.Script{ExitAfterTerm: 5 * time.Second})
		terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: rt})
		require.NoError(t, err)
		given := &v1.PodStatus{Phase: v1.PodRunning}
		killer := podkiller.New(terminator, podkiller.Options{
			Containers: func(ctx context.Context, _ *v1.Pod) []lifecycle.Container {
				require.Equal(t, "kill", ctx.Value(key{}))
				return []lifecycle.Container{{Name: "web", ID: "web"}}
			},
			Status: func(ctx context.Context, _ *v1.Pod) *v1.PodStatus {
				require.Equal(t, "kill", ctx.Value(key{}))
				return given
			},
		})
		ctx := context.WithValue(t.Context(), key{}, "kill")
		result, err := killer.KillPod(ctx, shutdowntest.Pod("pod", 0, 30), podkiller.HardEviction("low"))
		require.NoError(t, err)
		require.Equal(t, v1.PodFailed, result.Status.Phase)
		require.Equal(t, v1.PodRunning, given.Phase)

		rt.Start("web2", lifecycletest.Script{ExitAfterTerm: 5 * time.Second})
		killer = podkiller.New(terminator, podkiller.Options{
			Containers: func(context.Context, *v1.Pod) []lifecycle.Container {
				return []lifecycle.Container{{Name: "web", ID: "web2"}}
			},
			Status: func(context.Context, *v1.Pod) *v1.PodStatus {
				require.Fail(t, "a pod that may run has no final status")
				return given
			},
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = killer.KillPod(ctx, shutdowntest.Pod("pod2", 0, 30), shutdown.KillRequest{GracePeriodSeconds: ptr.To(int64(30))})
		var running *lifecycle.StillRunningError
		require.ErrorAs(t, err, &running)
		rt.Release()
		require.NoError(t, terminator.Close(t.Context()))
	})
}
