//go:build go1.25

package virtualkubelet_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
)

// One list lacks a running container: the list of 5 s, or the one that a deletion at 4.9 s asks for. The next list has the
// container again, so it has not ended. It ends only when a later deletion kills it.
func TestAContainerMissingFromOneListHasNotEnded(t *testing.T) {
	for name, isDeleted := range map[string]bool{"while the pod runs": false, "during a termination": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *testbed) {
				b.rt.cannotWatchExits = true
				b.rt.scripts["app"] = lifecycletest.Script{IgnoreTerm: true}
				pod := podOf(container("app"))
				b.create(pod)
				wait(4900 * time.Millisecond)
				b.rt.SetLists(lifecycletest.Lists{Lacks: []string{"uid/app"}})
				if isDeleted {
					b.deleteWithGrace(pod, 30)
				}
				wait(second / 2)                     // until 5.4 s
				b.rt.SetLists(lifecycletest.Lists{}) // lists are complete again
				wait(20 * second)
				require.NotNil(b, b.currentPod().Status.ContainerStatuses[0].State.Running)

				b.deleteWithGrace(pod, 1)
				wait(20 * second)
				require.Len(b, b.rt.Exits(), 1)
				require.Equal(b, lifecycletest.ByKill, b.rt.Exits()[0].By)
				require.EqualValues(b, 137, terminatedState(b, b.lastStatus(), "app").ExitCode)
			})
		})
	}
}

// StartContainer starts the container but returns an error, as if its answer was lost. A list, at once or after 20 s of
// failed lists, has the container. So the container is not started again.
func TestAStartWithALostAnswerIsNotRepeated(t *testing.T) {
	for name, lists := range map[string]lifecycletest.Lists{"lists succeed": {}, "lists fail for 20 s": {Err: errAway}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *testbed) {
				b.rt.losesReplies = true
				b.rt.SetLists(lists)
				b.create(restartingPod(container("app")))
				wait(20 * second)
				b.rt.SetLists(lifecycletest.Lists{}) // lists succeed again
				wait(2 * second)
				require.Equal(b, v1.PodRunning, b.lastStatus().Phase)
				wait(time.Minute)
				require.False(b, b.rt.wasStarted("uid/app#1"), "a second run")
				require.Zero(b, b.lastStatus().ContainerStatuses[0].RestartCount)
			})
		})
	}
}

// The answer of StartContainer is lost, and no list succeeds, so that nobody knows whether the container runs. The pod is
// deleted meanwhile. Once a list has the container, it is stopped, and the pod ends.
func TestAPodWithALostStartCanBeDeleted(t *testing.T) {
	inBubble(t, func(b *testbed) {
		pod := podOf(container("app"))
		b.rt.losesReplies = true
		b.rt.SetLists(lifecycletest.Lists{Err: errAway})
		b.create(pod)
		b.deleteWithGrace(pod, 30)
		wait(10 * second)
		require.Equal(b, v1.PodPending, b.lastStatus().Phase)
		b.rt.SetLists(lifecycletest.Lists{}) // lists succeed again
		wait(10 * second)
		require.Len(b, b.rt.Exits(), 1)
		require.Equal(b, v1.PodFailed, b.lastStatus().Phase)
	})
}

// Adopt does not guess what runs: if the list fails or has an invalid ID, Adopt returns an error, and the pod is not adopted.
func TestAdoptFailsIfTheRuntimeCannotList(t *testing.T) {
	inBubble(t, func(b *testbed) {
		pod := podOf(container("app"))
		b.rt.SetLists(lifecycletest.Lists{Err: errors.New("500")})
		require.EqualError(b, b.Adopt(b.Context(), virtualkubelet.Adopted{Pod: pod}), "failed to adopt pod ns/pod: 500")
		b.rt.SetLists(lifecycletest.Lists{}) // lists succeed again
		b.rt.Start(pod, "app", "containerd://1", lifecycletest.Script{})
		require.ErrorContains(b, b.Adopt(b.Context(), virtualkubelet.Adopted{Pod: pod}), `"containerd://"`)
		require.Empty(b, b.podsForShutdown())
	})
}

// A runtime that polls every 5 s has neither Exited nor exit codes. A pod is deleted at 7 s with 30 s. The list of 10 s
// has its container running. The stop gets the remaining 27 s, and the container exits at once. The lists of 15 and 20 s lack the
// container, and two lists prove the end. StopTimeoutSlack must be long enough for both.
func TestAPollingRuntimeHasTimeForTwoLists(t *testing.T) {
	inBubble(t, func(b *testbed) {
		b.rt.knowsNoExitCodes = true
		b.rt.SetLists(lifecycletest.Lists{Poll: 5 * second})
		pod := podOf(container("app"))
		b.create(pod)
		wait(7 * second)
		b.deleteWithGrace(pod, 30)
		wait(13 * second)
		require.Equal(b, []stop{{id: "uid/app", timeout: 30 - 3, at: 10 * second}}, b.stops())
		require.Equal(b, 20*second, b.lastNotification().at)
		app := terminatedState(b, b.lastStatus(), "app")
		require.Equal(b, "ContainerStatusUnknown", app.Reason)
		require.Equal(b, "The container could not be located when the pod was terminated", app.Message)
	}, func(o *virtualkubelet.Options) {
		o.Runtime = struct{ virtualkubelet.Runtime }{o.Runtime} // hides Exited
	})
}
