//go:build e2e

package e2e_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/machine"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime/containerdtest"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/source"
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

// An undisturbed machine powers off. The agent must stop the unit of --stop-unit, here a stand-in for kubelet.service,
// and then the pods, bucket after bucket and as it had planned. Its report must be right. During the shutdown,
// systemctl start must not start the unit again. The report has the kind poweroff on systemd 257 only: systemd 252 does
// not announce it.
func TestPowerOffDrainsThePodsFirst(t *testing.T) {
	eachPlatform(t, func(t *testing.T, on platform) {
		m, server, containers := bootWithKubelet(t, on)
		require.ElementsMatch(t, append(nginx[:2:2], stubborn, database, orders, proxy, network), slices.Collect(maps.Keys(containers)))
		planned := planOf(t, m)
		awaitStatus(t, m, "power off")
		asked, exits := powerOff(t, m, server, containers, func() {
			// A start that comes while the unit is being stopped would cancel the stop.
			require.Eventually(t, func() bool { return kubeletState(t, m) == "inactive" }, 4*time.Second, 50*time.Millisecond, "the unit must stop before the sleep hooks of the first pods end, which take 5 s")
			m.Run(t, "systemctl", "start", kubelet)
			require.Equal(t, "inactive", kubeletState(t, m), "systemctl start must not bring the unit back during the shutdown")
		})

		checkBuckets(t, asked, exits)
		checkExitCodes(t, exits)
		report := lastReport(t, m)
		checkPlan(t, planned, report)
		require.Empty(t, report.Errors)
		kind := source.KindUnknown
		if on.announcesKind {
			kind = source.KindPoweroff
		}
		require.Equal(t, kind, report.Kind)
	})
}

// powerOff powers a machine off, and calls disturb after the request. It returns when the power off was requested and
// when the containers ended. It requires that logind proceeded with the shutdown after the end of the last container,
// at most 5 s later, that logind did not give up waiting for a delay lock, and that no container runs when the machine
// is off.
func powerOff(t *testing.T, m *machine.Machine, server *containerdtest.Server, containers map[string]string, disturb ...func()) (asked time.Time, exits exitsByName) {
	t.Helper()
	asked = time.Now()
	m.Run(t, "systemctl", "poweroff")
	for _, f := range disturb {
		f()
	}
	m.AwaitPowerOff(t)
	exits = awaitExits(t, server, containers)
	var proceeded time.Time // when logind proceeded with the shutdown: all delay locks were released, or its limit was over
	for _, entry := range m.Journal(t) {
		if entry.Time.Before(asked) {
			continue
		}
		if entry.Unit == agentUnit {
			t.Log(entry.Message)
		}
		if entry.MessageID == machine.ShuttingDown {
			proceeded = entry.Time
		}
		require.NotContains(t, entry.Message, "Delay lock is active", "a delay lock was not released")
	}
	require.False(t, proceeded.IsZero(), "logind logs the shutdown")
	last := slices.MaxFunc([]time.Time{asked, exits.lastExit()}, time.Time.Compare) // the containers may have ended in an earlier drain
	require.False(t, proceeded.Before(last), "the machine goes down after the last container")
	require.Less(t, proceeded.Sub(last), 5*time.Second, "the machine goes down soon after")
	require.Empty(t, runningContainers(t, server))
	return asked, exits
}

// checkPlan compares a plan with the report of the shutdown that followed. It requires that no pod was told to stop
// later, had less time, or ended later than planned.
func checkPlan(t *testing.T, planned nodeplan.Node, report shutdown.Report) {
	const lag = 1 // second, allowed for timers and the container runtime on a busy machine
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

// buckets has the containers of testdata/pods, bucket after bucket. least and most bound the time from the end of the
// previous bucket to the exits of these containers, in an undisturbed drain.
var buckets = []struct {
	containers  []string
	least, most time.Duration
}{
	{containers: nginx, least: 5 * time.Second, most: 10 * time.Second},                          // the sleep hooks of 5 s run at the same time
	{containers: []string{stubborn}, least: 4 * time.Second, most: 8 * time.Second},              // killed after its own grace period of 4 s, in a bucket of 8 s
	{containers: []string{database}, least: 2 * time.Second, most: 8 * time.Second},              // its hook takes 2 s
	{containers: []string{orders, proxy}, least: 2 * time.Second, most: 8 * time.Second},         // the main container takes 2 s, and the sidecar waits for it
	{containers: []string{network}, least: 1 * time.Second, most: 4*time.Second + 3*time.Second}, // it takes 1 s of a bucket of 4 s; 3 s more for a busy machine
}

// checkOrder checks that no container ended before those of the previous bucket. asked is when the power off was
// requested.
func checkOrder(t *testing.T, asked time.Time, exits exitsByName) {
	previousEnd := asked
	for _, bucket := range buckets {
		for _, name := range bucket.containers {
			require.False(t, exits[name].At.Before(previousEnd), name)
		}
		previousEnd = exits.lastExit(bucket.containers...)
	}
}

// checkLeastTimes checks that no container ended sooner after the previous bucket than it needs: such a container would have
// been told to stop before the previous bucket ended.
func checkLeastTimes(t *testing.T, asked time.Time, exits exitsByName) {
	previousEnd := asked
	for _, bucket := range buckets {
		for _, name := range bucket.containers {
			require.GreaterOrEqual(t, exits[name].At.Sub(previousEnd), bucket.least, name)
		}
		previousEnd = exits.lastExit(bucket.containers...)
	}
}

// checkBuckets checks an undisturbed drain: the order, and that no container takes less or more time than it must.
func checkBuckets(t *testing.T, asked time.Time, exits exitsByName) {
	checkLeastTimes(t, asked, exits)
	previousEnd := asked
	for _, bucket := range buckets {
		require.LessOrEqual(t, exits.lastExit(bucket.containers...).Sub(previousEnd), bucket.most, bucket.containers)
		previousEnd = exits.lastExit(bucket.containers...)
	}
	require.False(t, exits[proxy].At.Before(exits[orders].At), "the sidecar is stopped after the main container")
}

// checkExitCodes checks that each container ended as it should. Its exit code shows which signal it got, and whether
// its hook had run.
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

// The disk is read-only, /etc and /usr included, as on hosts such as Bottlerocket. Only the folders of logind and
// journald can be written. The agent has no state folder. It must raise logind's limit by a file in /run instead of
// /etc, and drain the pods before the power off.
func TestAHostWhoseDiskIsReadOnly(t *testing.T) {
	eachPlatform(t, func(t *testing.T, on platform) {
		m, server, containers := bootAgent(t, on, map[string]string{
			flagsFile: "KUBEGRACE_NODE_FLAGS=--state-dir=\n",
			"/etc/systemd/system/" + agentUnit + ".d/state.conf": "[Service]\nStateDirectory=\n",
		}, func(m *machine.Machine) { m.ReadOnly("/var/lib/systemd", "/var/log/journal") })
		m.Run(t, "sh", "-c", "! touch /etc/x && ! touch /usr/x && ! touch /var/lib/x && test -e /run/systemd/logind.conf.d/zz-kubegrace.conf")
		require.True(t, delaysShutdowns(t, m))
		require.Greater(t, limitOf(t, m), 30*time.Second)
		powerOff(t, m, server, containers)
	})
}

// The agent is killed at random intervals during a drain, until the machine is off, at most 20 times. systemd starts it
// again each time. All the same no bucket may begin before the previous one has ended, and the machine must go down in
// time. It is not checked that each bucket lasts long enough, because a hook that ends with its agent starts again.
func TestAgentThatIsKilledAgainAndAgainDrainsInOrder(t *testing.T) {
	eachPlatform(t, func(t *testing.T, on platform) {
		m, server, containers := bootAgent(t, on, nil)
		deadAgent, wasShown := statusRow(t, "agent killed"), false // wasShown: by kubegrace-node status
		asked, exits := powerOff(t, m, server, containers, func() {
			for i := range 20 {
				pause := time.Duration(200+rand.IntN(1500)) * time.Millisecond
				if i%4 == 3 {
					pause += 2 * time.Second // long enough to kill the pod that ignores SIGTERM; a shorter run may never do it
				}
				select {
				case <-m.Ended():
				case <-time.After(pause):
					_, _ = m.TryRun(t.Context(), "systemctl", "kill", "--kill-who=main", "--signal=KILL", agentUnit) // fails while it is started again
					if !wasShown {
						wasShown = deadAgent.MatchString(status(t, m, asRoot, noFlags))
					}
				}
			}
		})
		require.True(t, wasShown, "at least once status said that the agent is dead and still delays the shutdown")
		checkOrder(t, asked, exits)
		require.Less(t, exits.lastExit().Sub(asked), 42*time.Second, "the schedule of 38 s, and at least 2 s for each container")
	})
}

// roomyConfig has buckets of 20 s, which is enough for every pod's grace period even if containerd is away for some
// seconds.
const roomyConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
shutdownGracePeriodByPodPriority:
- {priority: 0, shutdownGracePeriodSeconds: 20}
- {priority: 1000, shutdownGracePeriodSeconds: 20}
- {priority: 10000, shutdownGracePeriodSeconds: 20}
- {priority: 100000, shutdownGracePeriodSeconds: 20}
- {priority: 2000000000, shutdownGracePeriodSeconds: 20}
`

// containerd is killed three times in a drain, and is away for about two seconds each time: during a sleep hook, during
// the grace period of a container that ignores its signal, and while a sidecar waits for its main container. All the
// same each pod must get its grace period, in the order of buckets. The machine must power off within the schedule, and
// the report must have the end of each pod.
func TestContainerdIsRestartedInADrain(t *testing.T) {
	eachPlatform(t, func(t *testing.T, on platform) {
		m, server, containers := bootAgent(t, on, map[string]string{configFile: roomyConfig})
		noContainerd, wasShown := statusRow(t, "containerd restarted"), false // wasShown: by kubegrace-node status
		kill := func() {
			server.Kill(t)
			wasShown = wasShown || noContainerd.MatchString(status(t, m, asRoot, noFlags))
		}
		asked, exits := powerOff(t, m, server, containers, func() {
			<-time.After(2 * time.Second) // the sleep hooks of the first bucket take 5 s
			kill()
			for _, name := range []string{nginx[0], database} { // after them come the buckets of stubborn and of orders
				awaitExits(t, server, selectContainers(containers, name))
				<-time.After(time.Second)
				kill()
			}
			require.True(t, wasShown, "at least once status said that containerd is away, as COMPARED.md says")
		})

		checkLeastTimes(t, asked, exits)
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

// The folder of the host's containerd is mounted into the machine. The drop-in keptMountFile keeps it mounted in a soft
// reboot, in which systemd unmounts everything that has default dependencies.
const (
	keptMountFile = "/etc/systemd/system/run-containerd.mount.d/kept.conf"
	keptMountText = "[Unit]\nDefaultDependencies=no\n"
)

// A soft reboot (systemd 254 and later) restarts only the machine's userspace. The agent must drain the pods as in a
// reboot. The kernel and the boot ID stay the same, so the next agent cannot tell by the boot ID that the shutdown is
// over. It must see in the stored state that the shutdown is over, and must delay the power off that follows and drain
// the pods again.
func TestSoftRebootDrainsThePods(t *testing.T) {
	t.Parallel()
	m, server, before := bootAgent(t, newestPlatform(t), map[string]string{keptMountFile: keptMountText})
	bootID, invocation := m.Run(t, "cat", "/proc/sys/kernel/random/boot_id"), m.Invocation(t, agentUnit)

	asked := time.Now()
	m.Run(t, "systemctl", "soft-reboot")
	exits := awaitExits(t, server, before)
	checkBuckets(t, asked, exits)
	checkExitCodes(t, exits)

	// The next agent runs in the same boot.
	m.AwaitInvocation(t, agentUnit, invocation)
	require.Equal(t, bootID, m.Run(t, "cat", "/proc/sys/kernel/random/boot_id"))
	require.Equal(t, source.KindSoftReboot, lastReport(t, m).Kind)
	require.True(t, delaysShutdowns(t, m), "the next agent delays the next shutdown")

	// Other pods are started, and the machine powers off.
	pods := testdataPods(t)
	for i := range pods {
		pods[i].UID += "-again"
	}
	after := runPods(t, server, pods) // nobody tells the agent their priorities, so checkBuckets does not apply
	powerOff(t, m, server, after)
}
