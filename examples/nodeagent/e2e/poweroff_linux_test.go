//go:build e2e

package e2e_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/nodeagent/e2e/machine"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/api"
	"github.com/kubegrace/kubegrace/shutdown"
)

// The containers, by the buckets that testdata/kubelet.yaml has for their pods.
var (
	nginx    = []string{"nginx-deployment-5d59d67564-8wpgv/nginx", "nginx-deployment-5d59d67564-x2c9k/nginx"}
	stubborn = "stubborn/main"
	database = "database/main"
	orders   = "orders/main"
	proxy    = "orders/proxy"
	network  = "network/main"
)

func TestPowerOffDrainsThePodsFirst(t *testing.T) { eachPlatform(t, testPowerOffDrainsThePodsFirst) }

func testPowerOffDrainsThePodsFirst(t *testing.T, on platform) {
	m, server, containers := bootAgent(t, on, nil)
	require.ElementsMatch(t, append(nginx[:2:2], stubborn, database, orders, proxy, network), slices.Collect(maps.Keys(containers)))

	var planned api.Plan
	require.NoError(t, json.Unmarshal([]byte(get(t, m, "/plan")), &planned))

	asked := time.Now()
	m.Run(t, "systemctl", "poweroff")
	m.AwaitPowerOff(t)
	journal := m.Journal(t)
	for _, entry := range journal {
		if entry.Unit == agentUnit {
			t.Log(entry.Message)
		}
	}
	exits := recordsOf(t, server, containers)

	t.Run("buckets in order", func(t *testing.T) { checkBuckets(t, asked, exits) })
	t.Run("hooks and signals", func(t *testing.T) { checkExitCodes(t, exits) })
	t.Run("power off after the last container", func(t *testing.T) { checkPowerOff(t, exits, journal) })
	t.Run("as planned", func(t *testing.T) { checkPlan(t, planned, lastReport(t, m)) })
	t.Run("report", func(t *testing.T) {
		report := lastReport(t, m)
		require.Len(t, report.Pods, sandboxes)
		require.Empty(t, report.Errors)
		if on.tellsKind {
			require.Equal(t, shutdown.KindPoweroff, report.Kind)
		} else {
			require.Equal(t, shutdown.KindUnknown, report.Kind)
		}
	})
}

// checkPlan compares what the agent said that a shutdown would do with what it did: each
// pod is told to stop no later than planned, with no less time, and has ended by then.
func checkPlan(t *testing.T, planned api.Plan, report shutdown.Report) {
	const lag = 0.3 // of timers, and of the container runtime
	pods := map[string]api.PodPlan{}
	for _, bucket := range planned.Buckets {
		for _, pod := range bucket.Pods {
			pods[pod.Namespace+"/"+pod.Name] = pod
		}
	}
	require.Len(t, pods, len(report.Pods))
	for _, did := range report.Pods {
		name := did.Namespace + "/" + did.Name
		plan, ok := pods[name]
		require.True(t, ok, name)
		require.Equal(t, plan.Priority, did.Priority, name)
		require.GreaterOrEqual(t, did.GrantedSeconds, plan.GrantedSeconds, name)
		require.LessOrEqual(t, did.Started.Sub(report.Started).Seconds(), plan.StartSeconds+lag, name)
		require.LessOrEqual(t, did.Ended.Sub(report.Started).Seconds(), plan.EndSeconds+lag, name)
	}
	require.LessOrEqual(t, report.Ended.Sub(report.Started).Seconds(), planned.ReleaseSeconds+lag)
}

// checkBuckets goes by the time that each pod needs: its container's end shows that
// it was not told to stop before the last container of the bucket before had ended.
func checkBuckets(t *testing.T, asked time.Time, exits records) {
	began := asked
	for _, bucket := range []struct {
		containers  []string
		needs, most time.Duration // from the end of the bucket before
	}{
		{nginx, 5 * time.Second, 10 * time.Second},                          // sleeps, both at once
		{[]string{stubborn}, 4 * time.Second, 8 * time.Second},              // its own grace, not the bucket's
		{[]string{database}, 2 * time.Second, 8 * time.Second},              // flushes in its hook
		{[]string{orders, proxy}, 2 * time.Second, 8 * time.Second},         // finishes its work
		{[]string{network}, 1 * time.Second, 4*time.Second + 3*time.Second}, // and the floor, and roll-over
	} {
		for _, name := range bucket.containers {
			took := exits[name].At.Sub(began)
			require.GreaterOrEqualf(t, took, bucket.needs, "%s", name)
			require.LessOrEqualf(t, took, bucket.most, "%s", name)
		}
		began = exits.last(bucket.containers...)
	}
	require.False(t, exits[proxy].At.Before(exits[orders].At), "the sidecar ends after its main container")
}

func checkExitCodes(t *testing.T, exits records) {
	codes := map[string]uint32{}
	for name, exit := range exits {
		codes[name] = exit.Code
	}
	require.Equal(t, map[string]uint32{
		nginx[0]: 0, // by QUIT, the stop signal of its image
		nginx[1]: 0,
		stubborn: 128 + 9,
		database: 42, // its hook had ended when TERM came
		orders:   0,
		proxy:    0,
		network:  0,
	}, codes)
}

func checkPowerOff(t *testing.T, exits records, journal []machine.Entry) {
	began := slices.IndexFunc(journal, func(e machine.Entry) bool { return e.MessageID == machine.ShuttingDown })
	require.GreaterOrEqual(t, began, 0, "logind tells of the shutdown")
	require.False(t, journal[began].Time.Before(exits.last()), "the machine goes down after the last container")
	require.Less(t, journal[began].Time.Sub(exits.last()), 5*time.Second, "and soon")
	require.False(t, slices.ContainsFunc(journal, func(e machine.Entry) bool {
		return strings.Contains(e.Message, "Delay lock is active")
	}), "no lock is left")
}
