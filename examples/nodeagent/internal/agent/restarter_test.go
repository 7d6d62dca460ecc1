package agent_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// exitTimes returns how long after the start of the agent a container has exited each time.
func (b *testbed) exitTimes(container string) []time.Duration {
	began := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	var times []time.Duration
	for _, exit := range b.runtime.Exits() {
		if strings.HasPrefix(exit.ID, container) {
			times = append(times, exit.At.Sub(began))
		}
	}
	return times
}

// The pauses before restarts are the kubelet's: none, 10 s, 20 s, and so on up to 5 minutes.
// The container runs for 1 s each time.
func TestContainersAreRestartedAfterPauses(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.addPod("crash", 0, "exits by itself after 1s").Spec.RestartPolicy = v1.RestartPolicyAlways
		b.run()
		b.advance(30 * time.Minute)
		exits := b.exitTimes("crash/app")
		var pauses []time.Duration
		for i := 1; i < len(exits); i++ {
			pauses = append(pauses, exits[i]-exits[i-1]-time.Second)
		}
		require.Equal(t, []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 300 * time.Second}, pauses[:7])
		require.Equal(t, 300*time.Second, slices.Max(pauses))
		require.Contains(t, b.output(), "waits to start a container again that has ended")
		require.NoError(t, b.terminate())
		require.NotContains(t, b.output(), "by itself")
	})
}

// After 10 minutes without an exit the next restart has no pause.
func TestContainersThatRanForLongAreRestartedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.addPod("slow", 0, "exits by itself after 11m").Spec.RestartPolicy = v1.RestartPolicyAlways
		b.run()
		b.advance(time.Hour)
		require.Equal(t, []time.Duration{11 * time.Minute, 22 * time.Minute, 33 * time.Minute, 44 * time.Minute, 55 * time.Minute}, b.exitTimes("slow/app"))
		require.NoError(t, b.terminate())
	})
}

func TestRestartPolicies(t *testing.T) {
	for name, test := range map[string]struct {
		policy  v1.RestartPolicy
		sidecar bool
		restart bool
	}{
		"Never":                 {v1.RestartPolicyNever, false, false},
		"OnFailure, exit 0":     {v1.RestartPolicyOnFailure, false, false},
		"Always":                {v1.RestartPolicyAlways, false, true},
		"a sidecar, with Never": {v1.RestartPolicyNever, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *testbed) {
				pod := b.addPod("job", 0, "exits by itself after 1s")
				pod.Spec.RestartPolicy = test.policy
				if test.sidecar {
					pod.Spec.InitContainers = []v1.Container{{Name: "app", RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)}}
					pod.Spec.Containers = []v1.Container{{Name: "main"}}
				}
				b.run()
				b.advance(time.Minute)
				require.Equal(t, test.restart, len(b.exitTimes("job/app")) > 1)
				require.NoError(t, b.terminate())
			})
		})
	}
}

// A shutdown ends the pause before a restart, and the container is not restarted.
func TestContainersAreNotRestartedInAShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.addPod("crash", 0, "exits by itself after 1s").Spec.RestartPolicy = v1.RestartPolicyAlways
		b.addPod("slow", 0, "exits 4s after TERM")
		b.run()
		b.advance(11 * time.Second) // its second pause ends at 12 s
		exits := len(b.exitTimes("crash/app"))
		require.NoError(t, b.terminate())
		require.Len(t, b.exitTimes("crash/app"), exits)
	})
}
