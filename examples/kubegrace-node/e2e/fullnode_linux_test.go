//go:build e2e

package e2e_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/examples/internal/machine"
)

// fullNode is the kubelet's default for the most pods of a node (maxPods).
const fullNode = 110

// fullNodeConfig has four buckets of a minute each, for 27 or 28 pods each. On a busy machine runc needs so
// long to stop 28 containers.
const fullNodeConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
shutdownGracePeriodByPodPriority:
- {priority: 0, shutdownGracePeriodSeconds: 60}
- {priority: 1000, shutdownGracePeriodSeconds: 60}
- {priority: 10000, shutdownGracePeriodSeconds: 60}
- {priority: 2000000000, shutdownGracePeriodSeconds: 60}
`

// stopTime is how long each container takes to exit after its stop signal.
const stopTime = time.Second

// A machine powers off with 110 pods, as many as a kubelet runs by default, in four buckets. No container may
// be killed, and no bucket may begin before the previous one has ended.
func TestFullNodeIsDrainedInOrder(t *testing.T) {
	t.Parallel()
	on := newestPlatform(t)
	server := on.containerd.Start(t, images()...)
	m := machine.New(t, on.debian)
	priorities := []int32{0, 1000, 10_000, 2_000_000_000}
	pods, buckets := fullNodePods(priorities)
	installAgent(t, m, server, pods)
	m.WriteFile(t, configFile, 0o644, []byte(fullNodeConfig))
	containers := runPods(t, server, pods)
	m.Boot(t)
	m.AwaitActive(t, agentUnit)
	require.Len(t, containers, fullNode)

	previousEnd := time.Now()
	m.Run(t, "systemctl", "poweroff")
	m.AwaitPowerOff(t)
	exits := awaitExits(t, server, containers)
	checkPowerOff(t, exits, m.Journal(t))
	require.Empty(t, runningContainers(t, server))
	for _, priority := range priorities {
		for _, name := range buckets[priority] {
			require.Zerof(t, exits[name].Code, "%s was not killed", name)
			require.GreaterOrEqualf(t, exits[name].At.Sub(previousEnd), stopTime, "%s was told to stop after the previous bucket had ended", name)
		}
		previousEnd = exits.lastExit(buckets[priority]...)
	}
	report := lastReport(t, m)
	require.Len(t, report.Pods, fullNode)
	require.Empty(t, report.Errors)
	for _, pod := range report.Pods {
		require.Equal(t, "Graceful", pod.Outcome, pod.Name)
		require.False(t, pod.Ended.IsZero(), pod.Name)
	}
	require.True(t, slices.IsSortedFunc(report.Pods, comparePriorities))
}

// fullNodePods returns the pods, whose priorities alternate, and the names of their containers by priority.
func fullNodePods(priorities []int32) (pods []v1.Pod, buckets map[int32][]string) {
	script := fmt.Sprintf("trap 'sleep %d; exit 0' TERM; while :; do sleep 1000 & wait; done", int(stopTime.Seconds()))
	buckets = map[int32][]string{}
	for i := range fullNode {
		priority, name := priorities[i%len(priorities)], fmt.Sprintf("pod-%03d", i)
		pods = append(pods, v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: v1.NamespaceDefault, UID: types.UID(name)},
			Spec: v1.PodSpec{
				Priority:   &priority,
				Containers: []v1.Container{{Name: "main", Image: "busybox:1.36", Command: []string{"/bin/sh", "-c", script}}},
			},
		})
		buckets[priority] = append(buckets[priority], name+"/main")
	}
	return pods, buckets
}
