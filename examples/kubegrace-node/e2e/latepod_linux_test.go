//go:build e2e

package e2e_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/kubelettest"
	"github.com/kubegrace/kubegrace/shutdown"
)

// Somebody else than the unit that is stopped starts a pod again in the middle of a drain: it is listed, ended
// before the machine goes down, and told.
func TestAPodThatIsStartedInADrainIsEndedToo(t *testing.T) {
	eachPlatform(t, testAPodThatIsStartedInADrainIsEndedToo)
}

func testAPodThatIsStartedInADrainIsEndedToo(t *testing.T, on platform) {
	m, server, containers := bootAgent(t, on, nil)
	asked := time.Now()
	m.Run(t, "systemctl", "poweroff")
	awaitExits(t, server, selectContainers(containers, nginx...))
	late := testdataPods(t)[0] // the database, whose bucket has not begun
	late.Name, late.UID, late.Annotations = "late", "late", map[string]string{"kubernetes.io/config.source": "file"}
	containers["late/main"] = kubelettest.Run(t, server.Runtime(), &late)["main"]
	m.AwaitPowerOff(t)
	exits := awaitExits(t, server, containers)
	require.EqualValues(t, 42, exits["late/main"].Code, "its hook has run before TERM")
	report := lastReport(t, m)
	i := slices.IndexFunc(report.Pods, func(p shutdown.PodReport) bool { return p.Name == "late" })
	require.GreaterOrEqual(t, i, 0)
	require.Equal(t, "Graceful", report.Pods[i].Outcome)
	require.Less(t, exits.lastExit().Sub(asked), 42*time.Second)
	checkPowerOff(t, exits, m.Journal(t))
}
