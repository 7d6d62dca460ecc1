package agent_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// lives are the spans between the start of the agent and each end of a container.
func (b *bench) lives(container string) []time.Duration {
	began := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	var ends []time.Duration
	for _, exit := range b.runtime.Exits() {
		if strings.HasPrefix(exit.ID, container) {
			ends = append(ends, exit.At.Sub(began))
		}
	}
	return ends
}

// The pauses are the kubelet's: none, 10 s, 20 s, and so on up to 5 minutes. A container
// lives for 1 s here.
func TestContainersAreStartedAgainWithPauses(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.pod("crash", 0, "exits by itself after 1s").Spec.RestartPolicy = v1.RestartPolicyAlways
		b.run()
		b.pass(30 * time.Minute)
		ends := b.lives("crash/app")
		var pauses []time.Duration
		for i := 1; i < len(ends); i++ {
			pauses = append(pauses, ends[i]-ends[i-1]-time.Second)
		}
		require.Equal(t, []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 300 * time.Second}, pauses[:7])
		require.Equal(t, 300*time.Second, slices.Max(pauses))
		require.Contains(t, b.output(), "waits to start a container again that has ended")
		b.signals <- syscall.SIGTERM
		require.NoError(t, b.end())
		require.NotContains(t, b.output(), "by itself")
	})
}

// After 10 minutes without an exit the pauses begin anew.
func TestPausesBeginAnewAfterALongLife(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.pod("slow", 0, "exits by itself after 11m").Spec.RestartPolicy = v1.RestartPolicyAlways
		b.run()
		b.pass(time.Hour)
		require.Equal(t, []time.Duration{11 * time.Minute, 22 * time.Minute, 33 * time.Minute, 44 * time.Minute, 55 * time.Minute}, b.lives("slow/app"))
		b.signals <- syscall.SIGTERM
		require.NoError(t, b.end())
	})
}

func TestRestartPolicies(t *testing.T) {
	for name, test := range map[string]struct {
		policy  v1.RestartPolicy
		sidecar bool
		again   bool
	}{
		"Never":                 {v1.RestartPolicyNever, false, false},
		"OnFailure, exit 0":     {v1.RestartPolicyOnFailure, false, false},
		"Always":                {v1.RestartPolicyAlways, false, true},
		"a sidecar, with Never": {v1.RestartPolicyNever, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				pod := b.pod("job", 0, "exits by itself after 1s")
				pod.Spec.RestartPolicy = test.policy
				if test.sidecar {
					pod.Spec.InitContainers = []v1.Container{{Name: "app", RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)}}
					pod.Spec.Containers = []v1.Container{{Name: "main"}}
				}
				b.run()
				b.pass(time.Minute)
				require.Equal(t, test.again, len(b.lives("job/app")) > 1)
				b.signals <- syscall.SIGTERM
				require.NoError(t, b.end())
			})
		})
	}
}

// A pod that waits to start its container again is stopped at once, and its container is
// not started any more.
func TestNothingIsStartedAgainInAShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.pod("crash", 0, "exits by itself after 1s").Spec.RestartPolicy = v1.RestartPolicyAlways
		b.pod("slow", 0, "exits 4s after TERM")
		b.run()
		b.pass(11 * time.Second) // its second pause ends at 12 s
		ends := len(b.lives("crash/app"))
		b.signals <- syscall.SIGTERM
		require.NoError(t, b.end())
		require.Len(t, b.lives("crash/app"), ends)
	})
}
