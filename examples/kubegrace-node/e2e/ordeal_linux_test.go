//go:build e2e

package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/internal/machine"
	"github.com/kubegrace/kubegrace/internal/apiserverprocess"
	"github.com/kubegrace/kubegrace/internal/apiserverproxy"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime/containerdtest"
)

const (
	// ordealRuns is an environment variable: how many power offs each machine does, each with a seed of its own.
	// The seeds of power offs that passed are stored in ordealFolder, and are skipped in the next run of the test.
	// Without the variable there are two power offs.
	ordealRuns = "KUBEGRACE_ORDEAL"
	// ordealSeed is an environment variable: the seed of a single power off, to repeat it.
	ordealSeed   = "KUBEGRACE_ORDEAL_SEED"
	ordealFolder = "../../../.cache/ordeal"

	ordealLimit = 48 * time.Second       // how long logind waits for the agent: three buckets of 16 s
	ordealSlack = 2 * time.Second        // allowance for a busy machine
	ordealTick  = 300 * time.Millisecond // between two looks at the machine or the API server
	// ordealSignalDelay is how late after the begin of the grace period a container may receive SIGTERM. The grace period
	// begins when the agent records the kill. If the agent dies before it sends SIGTERM, the next agent sends it later.
	ordealSignalDelay = time.Second
	// ordealLeastTime is the time between SIGTERM and SIGKILL that every container gets at least, as with the
	// kubelet.
	ordealLeastTime = 2 * time.Second
	nodeName        = "machine"                   // of the machine's Node object
	kubeconfigFile  = "/etc/kubegrace/kubeconfig" // of the agent
	kubeconfig      = `apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q}}]
contexts: [{name: test, context: {cluster: test, user: node}}]
users: [{name: node, user: {}}]
current-context: test
`
	ordealConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
shutdownGracePeriodByPodPriority:
- {priority: 0, shutdownGracePeriodSeconds: 16}
- {priority: 1000, shutdownGracePeriodSeconds: 16}
- {priority: 2000000000, shutdownGracePeriodSeconds: 16}
`
)

// ordealPods are the pods of each power off, in the order of their priorities. Each container writes files into the
// folder /seen: NAME.term at its first SIGTERM and NAME.end when it ends. stubborn, which ignores SIGTERM, writes
// NAME.end ten times a second, so that the time of the file shows until when the container ran.
var ordealPods = []struct {
	name     string
	priority int32
	grace    time.Duration
	exitTime time.Duration // how long the container takes to exit after SIGTERM
	exitCode int32
}{
	{name: "web", priority: 0, grace: 4 * time.Second, exitTime: time.Second, exitCode: 3},
	{name: "stubborn", priority: 0, grace: 3 * time.Second, exitTime: time.Hour, exitCode: 128 + 9},
	{name: "database", priority: 1000, grace: 5 * time.Second, exitTime: 2 * time.Second, exitCode: 5},
	{name: "network", priority: 2000000000, grace: 4 * time.Second, exitTime: time.Second, exitCode: 7},
}

// A machine powers off and boots again, repeatedly. During each power off the agent, containerd, the API server and the
// bus are killed at random. All the same each pod must get its grace period, in the order of priorities, and the
// machine must go down within its limit. After the next boot the API server must know that each pod has ended. It must
// not have been told of an end before the end.
func TestOrdeal(t *testing.T) { eachPlatform(t, testOrdeal) }

// testOrdeal does one power off for each seed, until one fails. The same seed means the same kills at the same times.
func testOrdeal(t *testing.T, on platform) {
	o := newOrdeal(t, on)
	passedFile := filepath.Join(ordealFolder, string(on.debian))
	passed, err := os.ReadFile(passedFile)
	require.True(t, err == nil || errors.Is(err, fs.ErrNotExist), err)
	for _, seed := range ordealSeeds(t, strings.Fields(string(passed))) {
		began := time.Now()
		o.run(t, seed)
		t.Logf("seed %d: %v", seed, time.Since(began).Round(time.Second))
		if t.Failed() {
			return
		}
		if os.Getenv(ordealRuns) != "" {
			passed = fmt.Appendln(passed, seed)
			require.NoError(t, os.MkdirAll(ordealFolder, 0o755))
			require.NoError(t, os.WriteFile(passedFile, passed, 0o600))
		}
	}
}

// ordealSeeds returns the seeds of this run: the one of ordealSeed, or else those below ordealRuns that have not passed, or
// else 1 and 2, so that every ordinary run tests the same.
func ordealSeeds(t *testing.T, passed []string) (seeds []uint64) {
	if seed := os.Getenv(ordealSeed); seed != "" {
		n, err := strconv.ParseUint(seed, 10, 64)
		require.NoError(t, err)
		return []uint64{n}
	}
	runs := os.Getenv(ordealRuns)
	if runs == "" {
		return []uint64{1, 2}
	}
	n, err := strconv.ParseUint(runs, 10, 64)
	require.NoError(t, err)
	for seed := range n {
		if !slices.Contains(passed, strconv.FormatUint(seed, 10)) {
			seeds = append(seeds, seed)
		}
	}
	return seeds
}

// ordeal is a machine with the containerd and the API server that its power offs share.
type ordeal struct {
	m      *machine.Machine
	server *containerdtest.Server
	api    *apiserverproxy.Proxy
	core   corev1.CoreV1Interface // the API server itself, without the proxy
	seen   string                 // the host's folder that is mounted into the containers as /seen
	// containerdDied is when containerd was last killed, which happens at most once in a power off.
	containerdDied time.Time
}

// newOrdeal boots a machine whose agent knows an API server, behind a proxy that records all requests. No pods run
// yet.
func newOrdeal(t *testing.T, on platform) *ordeal {
	url := apiserverprocess.Start(t)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: url, QPS: -1})
	require.NoError(t, err)
	o := &ordeal{
		m: machine.New(t, on.debian), server: on.containerd.Start(t, images()...),
		api: apiserverproxy.Start(t, url), core: client.CoreV1(), seen: t.TempDir(),
	}
	_, err = o.core.Nodes().Create(t.Context(), &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName},
		Status:     v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	installAgent(t, o.m, o.server, nil)
	o.m.WriteFile(t, configFile, 0o644, []byte(ordealConfig))
	o.m.WriteFile(t, flagsFile, 0o644, []byte("KUBEGRACE_NODE_FLAGS=\"-v=2 --kubeconfig="+kubeconfigFile+" --node-name="+nodeName+" --listen=\"\n"))
	o.m.WriteFile(t, kubeconfigFile, 0o644, fmt.Appendf(nil, kubeconfig, o.api.URL()))
	o.m.ShareNetwork()
	o.boot(t)
	return o
}

// pods returns the pods that the API server has.
func (o *ordeal) pods(t *testing.T) []v1.Pod {
	list, err := o.core.Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return list.Items
}

// boot boots the machine and waits for the agent.
func (o *ordeal) boot(t *testing.T) {
	o.m.Boot(t)
	o.m.AwaitActive(t, agentUnit)
}

// run starts the pods and powers the machine off, while parts that the drain needs, such as the agent and containerd, are killed. It
// judges how the containers have ended, boots the machine again, and judges the pods' statuses at the API server. If a check fails,
// run logs the agent's log and how to repeat this power off.
func (o *ordeal) run(t *testing.T, seed uint64) {
	rng, began := rand.New(rand.NewPCG(seed, 29)), time.Now()
	defer func() {
		if !t.Failed() {
			return
		}
		for _, e := range o.m.Journal(t) {
			if e.Time.After(began) && e.Unit == agentUnit {
				t.Log(e.Time.Format(time.StampMilli), e.Message)
			}
		}
		t.Logf("again: %s=%d", ordealSeed, seed)
	}()
	pods := o.startPods(t, seed)
	require.Eventually(t, func() bool { return len(planOf(t, o.m).Buckets) == 3 && delaysShutdowns(t, o.m) }, time.Minute, ordealTick)
	asked, firstRequest := time.Now(), len(o.api.Requests())
	o.m.Run(t, "systemctl", "poweroff")
	faults, askedAgain := o.killAtRandom(t, rng, asked)
	o.m.AwaitPowerOff(t)
	off := time.Now()
	require.NoError(t, o.api.Revive())
	t.Logf("seed %d: off after %v; %s", seed, off.Sub(asked).Round(time.Millisecond), strings.Join(faults, ", "))
	ends := o.judgeContainers(t, pods, asked, askedAgain, off)
	o.boot(t)
	o.judgeStatuses(t, pods, ends, firstRequest)
	o.removePods(t, pods)
}

// startPods starts the pods for one power off. Their names have the seed and the time, so that /seen has no files of
// them yet.
func (o *ordeal) startPods(t *testing.T, seed uint64) (pods []*v1.Pod) {
	for _, p := range ordealPods {
		name := fmt.Sprintf("%s-%d-%d", p.name, seed, time.Now().UnixMilli())
		script := fmt.Sprintf("trap '[ -e /seen/%[1]s.term ] || : > /seen/%[1]s.term; sleep %[2]v; : > /seen/%[1]s.end; exit %[3]d' TERM; while :; do sleep 0.1; done", name, p.exitTime.Seconds(), p.exitCode)
		if p.exitTime > p.grace {
			script = fmt.Sprintf("trap '[ -e /seen/%[1]s.term ] || : > /seen/%[1]s.term' TERM; while :; do : > /seen/%[1]s.end; sleep 0.1; done", name)
		}
		pod, err := o.core.Pods(v1.NamespaceDefault).Create(t.Context(), &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: v1.NamespaceDefault},
			Spec: v1.PodSpec{
				NodeName: nodeName, Priority: &p.priority, TerminationGracePeriodSeconds: ptr.To(int64(p.grace.Seconds())),
				Volumes: []v1.Volume{{Name: "seen", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: o.seen}}}},
				Containers: []v1.Container{{
					Name: "main", Image: "busybox:1.36", Command: []string{"/bin/sh", "-c"}, Args: []string{script},
					VolumeMounts: []v1.VolumeMount{{Name: "seen", MountPath: "/seen"}},
				}},
			},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		runPod(t, o.server.Runtime(), pod)
		pod.Status.Phase = v1.PodRunning
		pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
		_, err = o.core.Pods(pod.Namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
		require.NoError(t, err)
		pods = append(pods, pod)
	}
	return pods
}

// fault is the death, or the return, of a part that the agent needs.
type fault struct {
	name   string
	inject func()
}

// killAtRandom kills one to five parts at random moments, or fewer if the machine is off earlier. It returns what it
// has killed, and when the machine was last asked to power off. If it kills the bus, it asks again: logind must be
// restarted to reach the new bus, and then forgets the request.
func (o *ordeal) killAtRandom(t *testing.T, rng *rand.Rand, asked time.Time) (injected []string, lastAsked time.Time) {
	killUnit := func(name string) { // has no effect while systemd starts the unit again
		_, _ = o.m.TryRun(t.Context(), "systemctl", "kill", "--kill-who=main", "--signal=KILL", name)
	}
	killAgent := fault{"agent", func() { killUnit(agentUnit) }}
	killContainerd := fault{"containerd", func() { o.containerdDied = time.Now(); o.server.Kill(t) }}
	faults := []fault{
		killAgent, killContainerd,
		{"API server", o.api.Die},
		{"API server is back", func() { require.NoError(t, o.api.Revive()) }},
		{"bus", func() {
			killUnit("dbus.service")
			_, _ = o.m.TryRun(t.Context(), "systemctl", "restart", "systemd-logind") // refused if the machine already goes down
			require.Eventually(t, func() bool {
				list, err := o.m.TryRun(t.Context(), "systemd-inhibit", "--list", "--no-legend")
				return o.isOff() || err == nil && strings.Contains(list, "kubegrace-node")
			}, time.Minute, ordealTick)
			lastAsked = time.Now()
			_, _ = o.m.TryRun(t.Context(), "systemctl", "poweroff") // fails if it is off
		}},
	}
	lastAsked = asked
	at, containerdMayDie := time.Duration(0), rng.IntN(2) == 0 // at most once in a power off, and never in half of them
	for range 1 + rng.IntN(5) {
		at += time.Duration(rng.IntN(3_000)) * time.Millisecond
		next := faults[rng.IntN(len(faults))]
		if next.name == killContainerd.name {
			if !containerdMayDie {
				next = killAgent
			}
			containerdMayDie = false
		}
		select {
		case <-o.m.Ended():
			return injected, lastAsked
		case <-time.After(time.Until(asked.Add(at))):
			next.inject()
			injected = append(injected, fmt.Sprintf("%s at %v", next.name, time.Since(asked).Round(time.Millisecond)))
		}
	}
	return injected, lastAsked
}

// isOff reports whether the machine is off.
func (o *ordeal) isOff() bool {
	select {
	case <-o.m.Ended():
		return true
	default:
		return false
	}
}

// removePods removes the pods of a power off from the API server and from containerd, as a kubelet does.
func (o *ordeal) removePods(t *testing.T, pods []*v1.Pod) {
	for _, pod := range pods {
		require.NoError(t, o.core.Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}))
	}
	sandboxes, err := o.server.Runtime().ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{})
	require.NoError(t, err)
	for _, s := range sandboxes.GetItems() {
		_, err := o.server.Runtime().StopPodSandbox(t.Context(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: s.GetId()})
		require.NoError(t, err)
		_, err = o.server.Runtime().RemovePodSandbox(t.Context(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: s.GetId()})
		require.NoError(t, err)
	}
}

// writtenAt returns when a pod's container last wrote its file in /seen with this suffix, .term or .end. Zero means
// never.
func (o *ordeal) writtenAt(t *testing.T, pod *v1.Pod, suffix string) time.Time {
	info, err := os.Stat(filepath.Join(o.seen, pod.Name+suffix))
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}
	}
	require.NoError(t, err)
	return info.ModTime()
}

// judgeContainers checks a power off by the files that the containers have written. Each container received SIGTERM in
// the order of priorities, had its grace period, and ended before the machine was off. asked is when the machine was first
// asked to power off, askedAgain when it was last asked, which may be after logind has proceeded with the shutdown, and off
// is when it was off. The result is when the containers ended.
func (o *ordeal) judgeContainers(t *testing.T, pods []*v1.Pod, asked, askedAgain, off time.Time) (ends map[types.UID]time.Time) {
	ends = map[types.UID]time.Time{}
	for i, pod := range pods {
		p, term, end := ordealPods[i], o.writtenAt(t, pod, ".term"), o.writtenAt(t, pod, ".end")
		require.False(t, term.IsZero(), "%s has had no SIGTERM", p.name)
		least := min(p.grace, p.exitTime) // from SIGTERM to the end
		if o.mayHaveLostTime(term, p.grace) {
			least = min(least, ordealLeastTime)
		}
		assert.GreaterOrEqual(t, end.Sub(term), least-ordealSignalDelay, "%s must get its grace period", p.name)
		assert.True(t, end.Before(off), "%s must end before the machine", p.name)
		for j, previous := range pods[:i] {
			if ordealPods[j].priority < p.priority {
				assert.False(t, term.Before(ends[previous.UID]), "%s was told to stop before %s had ended", p.name, ordealPods[j].name)
			}
		}
		ends[pod.UID] = end
	}
	journal := o.m.Journal(t)
	i := slices.IndexFunc(journal, func(e machine.Entry) bool {
		return e.MessageID == machine.ShuttingDown && e.Time.After(asked) && e.Time.Before(off)
	})
	if assert.GreaterOrEqual(t, i, 0, "logind logs the shutdown") {
		proceeded := journal[i].Time // after logind has waited for the agent's lock
		assert.Less(t, proceeded.Sub(askedAgain), ordealLimit+ordealSlack, "the machine must go down within its limit")
		for i, pod := range pods {
			assert.True(t, ends[pod.UID].Before(proceeded.Add(ordealTick)), "%s must end before logind proceeds with the shutdown", ordealPods[i].name)
		}
	}
	return ends
}

// mayHaveLostTime reports whether containerd may have been down during a pod's grace period. The agent can then send
// SIGTERM only when containerd is back, but the pod's deadline stays: the container has less than the grace period
// between SIGTERM and SIGKILL, though at least ordealLeastTime. term is when the container received SIGTERM. The grace period
// began at most grace before that, and ends at most grace after it.
func (o *ordeal) mayHaveLostTime(term time.Time, grace time.Duration) bool {
	return o.containerdDied.After(term.Add(-grace)) && o.containerdDied.Before(term.Add(grace))
}

// judgeStatuses checks what the API server knows after the boot: each pod is Failed, with its container's exit code. It
// also checks the requests of the power off, which begin with the index firstRequest: none reported the end of a pod
// before the pod had ended.
func (o *ordeal) judgeStatuses(t *testing.T, pods []*v1.Pod, ends map[types.UID]time.Time, firstRequest int) {
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(o.pods(t), func(p v1.Pod) bool { return p.Status.Phase != v1.PodFailed })
	}, time.Minute, ordealTick, "the API server must know the end of each pod")
	for _, pod := range o.pods(t) {
		started := ordealPods[slices.IndexFunc(pods, func(p *v1.Pod) bool { return p.UID == pod.UID })]
		assert.Equal(t, "Terminated", pod.Status.Reason, pod.Name)
		for _, c := range pod.Status.ContainerStatuses {
			if !assert.NotNil(t, c.State.Terminated, pod.Name) {
				continue
			}
			code := c.State.Terminated.ExitCode
			isUnknown := code == 255 // containerd 2 gives 255 if a container ended while containerd was away
			// A container may also have been killed, if containerd was down during its grace period.
			mayBeKilled := code == 128+9 && o.mayHaveLostTime(o.writtenAt(t, &pod, ".term"), started.grace)
			assert.True(t, code == started.exitCode || isUnknown || mayBeKilled, "exit code %d of %s", code, pod.Name)
		}
	}
	for _, r := range o.api.Requests()[firstRequest:] {
		var patch struct {
			Status v1.PodStatus `json:"status"`
		}
		i := slices.IndexFunc(pods, func(p *v1.Pod) bool { return r.Verb == "patch" && p.Name == r.Name })
		if i >= 0 && json.Unmarshal(r.Body, &patch) == nil && patch.Status.Phase == v1.PodFailed {
			assert.True(t, r.Answered.IsZero() || r.Answered.After(ends[pods[i].UID]), "the API server was told of the end of %s before it was", r.Name)
		}
	}
}
