//go:build e2e

package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The agent is killed again and again after a hook has ended, while its container still stops. The
// container counts: it exits with the number of hooks that have run.
func TestAHookRunsOnceHoweverOftenTheAgentIsKilled(t *testing.T) {
	eachPlatform(t, testAHookRunsOnceHoweverOftenTheAgentIsKilled)
}

func testAHookRunsOnceHoweverOftenTheAgentIsKilled(t *testing.T, on platform) {
	priority := int32(0)
	pods := []v1.Pod{{
		ObjectMeta: metav1.ObjectMeta{Name: "counted", Namespace: v1.NamespaceDefault, UID: "counted"},
		Spec: v1.PodSpec{Priority: &priority, Containers: []v1.Container{{
			Name: "main", Image: "busybox:1.36",
			Command:   []string{"/bin/sh", "-c", "trap 'sleep 9; exit $(wc -l < /tmp/runs)' TERM; while :; do sleep 1000 & wait; done"},
			Lifecycle: &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"/bin/sh", "-c", "sleep 1; echo run >> /tmp/runs"}}}},
		}}},
	}}
	m, server, containers := bootAgentWith(t, on, pods, map[string]string{configFile: roomyConfig})
	asked := time.Now()
	m.Run(t, "systemctl", "poweroff")
	require.Eventually(t, func() bool {
		response, err := server.Runtime().ExecSync(t.Context(), &runtimeapi.ExecSyncRequest{ContainerId: containers["counted/main"], Cmd: []string{"cat", "/tmp/runs"}})
		return err == nil && response.GetExitCode() == 0
	}, 20*time.Second, 50*time.Millisecond)
	for range 4 {
		<-time.After(1500 * time.Millisecond) // a hook that is begun again has ended by then
		m.Run(t, "systemctl", "kill", "--kill-who=main", "--signal=KILL", agentUnit)
	}
	m.AwaitPowerOff(t)
	exits := awaitExits(t, server, containers)
	checkPowerOff(t, exits, m.Journal(t))
	require.Equal(t, uint32(1), exits["counted/main"].Code, "runs of the hook")
	require.GreaterOrEqual(t, exits["counted/main"].At.Sub(asked), 6*time.Second, "it was not killed")
}
