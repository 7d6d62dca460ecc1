package lifecycletest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

func ExampleRuntime() {
	rt := lifecycletest.NewRuntime()
	rt.Start("obedient", lifecycletest.Script{})
	rt.Start("stubborn", lifecycletest.Script{IgnoreTerm: true})
	for _, id := range []string{"obedient", "stubborn"} {
		if err := rt.StopContainer(context.Background(), id, 1); err != nil {
			fmt.Println(err)
		}
	}
	for _, exit := range rt.Exits() {
		fmt.Println(exit.ID, "was ended by", exit.By)
	}
	// Output:
	// obedient was ended by TERM
	// stubborn was ended by KILL
}

// The program of the package's documentation.
func TestAgentStopsItsPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := lifecycletest.NewRuntime()
		rt.Start("app", lifecycletest.Script{ExitAfterTerm: 3 * time.Second})
		terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: rt, Exits: rt})
		require.NoError(t, err)

		pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "app"}}}}
		result, err := terminator.KillPod(t.Context(), pod, lifecycle.Request{
			GracePeriodSeconds: ptr.To(int64(30)),
			Containers:         []lifecycle.Container{{Name: "app", ID: "app"}},
		})
		require.NoError(t, err)
		require.Equal(t, lifecycle.Graceful, result.Outcome())
		require.Equal(t, lifecycletest.ByTerm, rt.Exits()[0].By)
	})
}
