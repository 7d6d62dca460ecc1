//go:build e2e

package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle/criruntime/containerdtest"
)

// roomyConfig has buckets of 20 s. That is enough for every pod's grace period even if containerd is away for
// some seconds.
const roomyConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
shutdownGracePeriodByPodPriority:
- {priority: 0, shutdownGracePeriodSeconds: 20}
- {priority: 1000, shutdownGracePeriodSeconds: 20}
- {priority: 10000, shutdownGracePeriodSeconds: 20}
- {priority: 100000, shutdownGracePeriodSeconds: 20}
- {priority: 2000000000, shutdownGracePeriodSeconds: 20}
`

// containerd is killed three times in a drain, and is away for about two seconds each time: during a sleep
// hook, during the grace period of a container that ignores its signal, and while a sidecar waits for its main
// container. All the same each pod must get its grace period, in order, the machine must power off within the
// schedule, and the report must have the end of each pod.
func TestContainerdIsRestartedInADrain(t *testing.T) {
	eachPlatform(t, func(t *testing.T, on platform) {
		m, server, containers := bootAgent(t, on, map[string]string{configFile: roomyConfig})
		away, said := row(t, "containerd restarted"), false
		kill := func() {
			server.Kill(t)
			said = said || away.MatchString(status(t, m, nil, ""))
		}
		asked, exits := powerOff(t, m, server, containers, func() {
			<-time.After(2 * time.Second) // the sleep hooks of the first bucket take 5 s
			kill()
			for _, name := range []string{nginx[0], database} { // when these have ended, the next bucket begins: stubborn, and orders
				awaitExits(t, server, selectContainers(containers, name))
				<-time.After(time.Second)
				kill()
			}
			require.True(t, said, "at least once status said that containerd is away, as COMPARED.md says")
		})
		checkOrder(t, asked, exits, true)
		if ended := exits[orders]; ended.Code == 255 { // containerd 2 gives 255 if a container ended while containerd was away
			exits[orders] = containerdtest.Exit{At: ended.At}
		}
		checkExitCodes(t, exits)
		require.Less(t, exits.lastExit().Sub(asked), 100*time.Second, "the schedule: five buckets of 20 s")
		for _, pod := range lastReport(t, m).Pods {
			require.False(t, pod.Ended.IsZero(), pod.Name)
		}
	})
}
