package command_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/apistatus"
)

// The policy is that of the kind of shutdown that logind announces.
func TestPodPolicyOfEachKind(t *testing.T) {
	t.Parallel()
	const policies = "--pod-policy=reboot=LeaveAsIs,kexec=SetTerminal,default=LeaveAsIs"
	for _, test := range []struct {
		kind   string
		policy string // the flag
		want   v1.PodPhase
	}{
		{"reboot", policies, v1.PodRunning},
		{"kexec", policies, v1.PodFailed},
		{"halt", policies, v1.PodRunning},
		{"poweroff", "--pod-policy=reboot=LeaveAsIs", v1.PodFailed},
	} {
		t.Run(test.kind, func(t *testing.T) {
			t.Parallel()
			host, c := startLogin1(t), startCluster(t, 10)
			p := startOnBus(t, host.address, "--source=logind", "--kubeconfig="+c.kubeconfig, "--node-name="+nodeName, test.policy)
			p.waitFor("This machine's shutdown is held back")
			c.waitReady("web")
			host.SetKind(test.kind)
			host.Prepare(true)
			host.waitReleased(t)
			require.Equal(t, test.want, c.pod("web").Status.Phase, "before the machine goes down")
			require.Equal(t, "node is shutting down: "+test.kind, c.nodeCondition(apistatus.NodeGracefulNodeShutdownInProgress).Message)
		})
	}
}
