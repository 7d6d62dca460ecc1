//go:build e2e

package e2e_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/machine"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/shutdown"
)

// The containers of testdata/pods, in the order of their buckets in testdata/kubelet.yaml.
var (
	nginx    = []string{"nginx-deployment-5d59d67564-8wpgv/nginx", "nginx-deployment-5d59d67564-x2c9k/nginx"}
	stubborn = "stubborn/main"
	database = "database/main"
	orders   = "orders/main"
	proxy    = "orders/proxy"
	network  = "network/main"
)

// The basic case: an undisturbed machine powers off. The pods must stop first, bucket after bucket and as the
// agent had planned, and the agent's report must be right. Only systemd 257 announces that the shutdown is a
// power off.
func TestPowerOffDrainsThePodsFirst(t *testing.T) { eachPlatform(t, testPowerOffDrainsThePodsFirst) }

// testPowerOffDrainsThePodsFirst powers off a machine with the pods of testdata/pods. It judges the drain by
// containerd's exits and the journal, and compares the agent's plan and report with what happened.
func testPowerOffDrainsThePodsFirst(t *testing.T, on platform) {
	m, server, containers := bootAgent(t, on, nil)
	require.ElementsMatch(t, append(nginx[:2:2], stubborn, database, orders, proxy, network), slices.Collect(maps.Keys(containers)))

	planned := planOf(t, m)
	awaitRow(t, m, "power off")

	asked := time.Now()
	m.Run(t, "systemctl", "poweroff")
	m.AwaitPowerOff(t)
	journal := m.Journal(t)
	logAgent(t, journal)
	exits := awaitExits(t, server, containers)

	t.Run("buckets in order", func(t *testing.T) { checkBuckets(t, asked, exits) })
	t.Run("hooks and signals", func(t *testing.T) { checkExitCodes(t, exits) })
	t.Run("power off after the last container", func(t *testing.T) { checkPowerOff(t, exits, journal) })
	t.Run("as planned", func(t *testing.T) { checkPlan(t, planned, lastReport(t, m)) })
	t.Run("report", func(t *testing.T) {
		report := lastReport(t, m)
		require.Len(t, report.Pods, podCount)
		require.Empty(t, report.Errors)
		if on.announcesKind {
			require.Equal(t, source.KindPoweroff, report.Kind)
		} else {
			require.Equal(t, source.KindUnknown, report.Kind)
		}
	})
}

// checkPlan compares a plan with the report of the shutdown that followed. No pod may have been told to stop
// later, have had less time, or have ended later than planned.
func checkPlan(t *testing.T, planned nodeplan.Node, report shutdown.Report) {
	const lag = 0.3 // seconds, allowed for timers and the container runtime
	pods := map[string]nodeplan.Pod{}
	for _, bucket := range planned.Buckets {
		for _, pod := range bucket.Pods {
			pods[pod.Namespace+"/"+pod.Name] = pod
		}
	}
	require.Len(t, pods, len(report.Pods))
	for _, actual := range report.Pods {
		name := actual.Namespace + "/" + actual.Name
		plan, ok := pods[name]
		require.True(t, ok, name)
		require.Equal(t, plan.Priority, actual.Priority, name)
		require.GreaterOrEqual(t, actual.GrantedSeconds, plan.GrantedSeconds-1, name) // a slow list of the pods may cost a second
		require.LessOrEqual(t, actual.Started.Sub(report.Started).Seconds(), plan.LatestStartSeconds+lag, name)
		require.LessOrEqual(t, actual.Ended.Sub(report.Started).Seconds(), plan.LatestEndSeconds+lag, name)
	}
	require.LessOrEqual(t, report.Ended.Sub(report.Started).Seconds(), planned.ReleaseSeconds+lag)
}

// buckets are the containers of testdata/pods in the order of their buckets. least and most bound the time
// from the end of the previous bucket to the exits of these containers, in an undisturbed drain.
var buckets = []struct {
	containers  []string
	least, most time.Duration
}{
	{nginx, 5 * time.Second, 10 * time.Second},                          // the sleep hooks of 5 s run at the same time
	{[]string{stubborn}, 4 * time.Second, 8 * time.Second},              // killed after its own grace period of 4 s, in a bucket of 8 s
	{[]string{database}, 2 * time.Second, 8 * time.Second},              // its hook takes 2 s
	{[]string{orders, proxy}, 2 * time.Second, 8 * time.Second},         // the main container takes 2 s, and the sidecar waits for it
	{[]string{network}, 1 * time.Second, 4*time.Second + 3*time.Second}, // it takes 1 s of a bucket of 4 s; 3 s more for a busy machine
}

// checkOrder checks that no container ended before those of the previous bucket. With least it also checks
// that none ended sooner after them than it needs: such a container was told to stop before the previous
// bucket had ended.
func checkOrder(t *testing.T, asked time.Time, exits exitsByName, least bool) {
	previousEnd := asked
	for _, bucket := range buckets {
		for _, name := range bucket.containers {
			took := exits[name].At.Sub(previousEnd)
			require.GreaterOrEqual(t, took, time.Duration(0), name)
			require.True(t, !least || took >= bucket.least, "%s took %v", name, took)
		}
		previousEnd = exits.lastExit(bucket.containers...)
	}
}

// checkBuckets checks an undisturbed drain: the order, and that no container takes too long.
func checkBuckets(t *testing.T, asked time.Time, exits exitsByName) {
	checkOrder(t, asked, exits, true)
	previousEnd := asked
	for _, bucket := range buckets {
		require.LessOrEqual(t, exits.lastExit(bucket.containers...).Sub(previousEnd), bucket.most, bucket.containers)
		previousEnd = exits.lastExit(bucket.containers...)
	}
	require.False(t, exits[proxy].At.Before(exits[orders].At), "the sidecar is stopped after the main container")
}

// checkExitCodes checks that each container ended as it should: the codes show which signal it got, and
// whether its hook had run.
func checkExitCodes(t *testing.T, exits exitsByName) {
	codes := map[string]uint32{}
	for name, exit := range exits {
		codes[name] = exit.Code
	}
	require.Equal(t, map[string]uint32{
		nginx[0]: 0, // it got QUIT, the stop signal of its image
		nginx[1]: 0,
		stubborn: 128 + 9, // it got SIGKILL
		database: 42,      // its hook had ended before it got TERM
		orders:   0,
		proxy:    0,
		network:  0,
	}, codes)
}

// checkPowerOff checks that logind began the shutdown after the last container had ended, at most 5 s later,
// and that it did not have to give up waiting for a delay lock.
func checkPowerOff(t *testing.T, exits exitsByName, journal []machine.Entry) {
	shutdown := shutdownTime(t, journal)
	require.False(t, shutdown.Before(exits.lastExit()), "the machine goes down after the last container")
	require.Less(t, shutdown.Sub(exits.lastExit()), 5*time.Second, "the machine goes down soon after")
	require.False(t, slices.ContainsFunc(journal, func(e machine.Entry) bool {
		return strings.Contains(e.Message, "Delay lock is active")
	}), "a delay lock was not released")
}

// shutdownTime returns when logind proceeded with the shutdown: all delay locks were released, or its limit was
// over.
func shutdownTime(t *testing.T, journal []machine.Entry) time.Time {
	t.Helper()
	i := slices.IndexFunc(journal, func(e machine.Entry) bool { return e.MessageID == machine.ShuttingDown })
	require.GreaterOrEqual(t, i, 0, "logind logs the shutdown")
	return journal[i].Time
}

// logAgent logs what the agent has written to the journal.
func logAgent(t *testing.T, journal []machine.Entry) {
	t.Helper()
	for _, entry := range journal {
		if entry.Unit == agentUnit {
			t.Log(entry.Message)
		}
	}
}
