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
	// ordealRuns is an environment variable: how many power offs each machine does. Each has its own seed.
	// Seeds that have passed are stored in ordealFolder, and are skipped in the next run. Without the variable
	// there are two.
	ordealRuns = "KUBEGRACE_ORDEAL"
	// ordealSeed is an environment variable: the seed of the one power off that is to be repeated.
	ordealSeed   = "KUBEGRACE_ORDEAL_SEED"
	ordealFolder = "../../../.cache/ordeal"

	ordealLimit = 48 * time.Second // three buckets of 16 s: so long the agent has logind wait
	ordealSlack = 2 * time.Second  // allowance for a busy machine
	ordealTick  = 300 * time.Millisecond
	// ordealStart is by how much a pod's grace period may be shorter than asked. The grace period runs from
	// the moment when the agent records the kill. If the agent dies before it sends SIGTERM, the next agent
	// sends it later.
	ordealStart = time.Second
	// ordealLeast is the least time between SIGTERM and SIGKILL that every container gets, as with the
	// kubelet.
	ordealLeast = 2 * time.Second
	// The name of the machine's Node object, and the file with the agent's kubeconfig.
	nodeName       = "machine"
	kubeconfigFile = "/etc/kubegrace/kubeconfig"
	kubeconfig     = `apiVersion: v1
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

// ordealPods are the pods of each power off, in the order in which they end. Each container writes files into
// the folder /seen: NAME.term at its first SIGTERM and NAME.end when it ends. stubborn, which ignores SIGTERM,
// instead writes NAME.end ten times a second, so that the file shows until when it lived.
var ordealPods = []struct {
	name        string
	priority    int32
	grace, work time.Duration // work is how long the container takes to end after SIGTERM
	code        int32         // its exit code
}{
	{"web", 0, 4 * time.Second, time.Second, 3},
	{"stubborn", 0, 3 * time.Second, time.Hour, 128 + 9},
	{"database", 1000, 5 * time.Second, 2 * time.Second, 5},
	{"network", 2000000000, 4 * time.Second, time.Second, 7},
}

// A machine powers off and boots again and again. During each power off the agent, containerd, the API server
// and the bus are killed at random. All the same each pod must get its grace period, in order, and the machine
// must go down within its limit. After the next boot the API server must know the end of each pod, and must
// not have been told of one before it happened.
func TestOrdeal(t *testing.T) { eachPlatform(t, testOrdeal) }

// testOrdeal does one power off for each seed. Seeds come from the environment variables, or are 1 and 2. A
// seed makes the same kills at the same times. It stops at the first power off that fails.
func testOrdeal(t *testing.T, on platform) {
	o := newOrdeal(t, on)
	done := filepath.Join(ordealFolder, string(on.debian))
	text, err := os.ReadFile(done)
	require.True(t, err == nil || errors.Is(err, fs.ErrNotExist), err)
	seeds := []uint64{1, 2} // fixed, so that every ordinary run tests the same
	if runs := os.Getenv(ordealRuns); runs != "" {
		n, err := strconv.ParseUint(runs, 10, 64)
		require.NoError(t, err)
		seeds = nil
		for seed := range n {
			if !slices.Contains(strings.Fields(string(text)), strconv.FormatUint(seed, 10)) {
				seeds = append(seeds, seed)
			}
		}
	}
	if seed := os.Getenv(ordealSeed); seed != "" {
		n, err := strconv.ParseUint(seed, 10, 64)
		require.NoError(t, err)
		seeds = []uint64{n}
	}
	for _, seed := range seeds {
		began := time.Now()
		o.run(t, seed)
		t.Logf("seed %d: %v", seed, time.Since(began).Round(time.Second))
		if t.Failed() {
			return
		}
		if os.Getenv(ordealRuns) != "" {
			text = fmt.Appendln(text, seed)
			require.NoError(t, os.MkdirAll(ordealFolder, 0o755))
			require.NoError(t, os.WriteFile(done, text, 0o600))
		}
	}
}

// ordeal is a machine with the containerd and the API server that its power offs share.
type ordeal struct {
	m      *machine.Machine
	server *containerdtest.Server
	api    *apiserverproxy.Proxy
	core   corev1.CoreV1Interface // of the API server itself
	seen   string                 // the host's folder that is mounted into the containers as /seen
	died   time.Time              // when containerd was last killed, which happens at most once in a power off
}

// newOrdeal boots a machine whose agent knows an API server, behind a proxy that records all requests. No pods run
// yet.
func newOrdeal(t *testing.T, on platform) *ordeal {
	url := apiserverprocess.Start(t)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: url, QPS: -1})
	require.NoError(t, err)
	o := &ordeal{m: machine.New(t, on.debian), server: on.containerd.Start(t, images()...), api: apiserverproxy.Start(t, url), core: client.CoreV1(), seen: t.TempDir()}
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

// run starts the pods, powers the machine off while parts are killed, judges what happened, and boots the
// machine again. If the test fails, it logs the agent's log and how to repeat this power off.
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
	pods := o.start(t, seed)
	require.Eventually(t, func() bool { return len(planOf(t, o.m).Buckets) == 3 && delaysShutdowns(t, o.m) }, time.Minute, ordealTick)
	asked, before := time.Now(), len(o.api.Requests())
	o.m.Run(t, "systemctl", "poweroff")
	faults, askedAgain := o.killAtRandom(t, rng, asked)
	o.m.AwaitPowerOff(t)
	off := time.Now()
	require.NoError(t, o.api.Revive())
	t.Logf("seed %d: off after %v; %s", seed, off.Sub(asked).Round(time.Millisecond), strings.Join(faults, ", "))
	ends := o.judgeContainers(t, pods, askedAgain, off)
	o.boot(t)
	o.judgeStatuses(t, pods, ends, before)
	o.remove(t, pods)
}

// start starts the pods for one power off. Their names have the seed and the time, so that /seen has no files
// of them yet.
func (o *ordeal) start(t *testing.T, seed uint64) (pods []*v1.Pod) {
	for _, p := range ordealPods {
		name := fmt.Sprintf("%s-%d-%d", p.name, seed, time.Now().UnixMilli())
		script := fmt.Sprintf("trap '[ -e /seen/%[1]s.term ] || : > /seen/%[1]s.term; sleep %[2]v; : > /seen/%[1]s.end; exit %[3]d' TERM; while :; do sleep 0.1; done", name, p.work.Seconds(), p.code)
		if p.work > p.grace {
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

// killAtRandom kills one to five parts at random moments, or fewer if the machine goes down before. It returns
// what it has killed, and when the machine was last asked to power off. If it kills the bus it has to ask
// again: logind then forgets the request, and must be restarted to reach the new bus.
func (o *ordeal) killAtRandom(t *testing.T, rng *rand.Rand, asked time.Time) (done []string, last time.Time) {
	unit := func(name string) { // fails while it is started again
		_, _ = o.m.TryRun(t.Context(), "systemctl", "kill", "--kill-who=main", "--signal=KILL", name)
	}
	faults := []func(){
		func() { unit(agentUnit) },
		func() { o.died = time.Now(); o.server.Kill(t) },
		o.api.Die,
		func() { require.NoError(t, o.api.Revive()) },
		func() {
			unit("dbus.service")
			_, _ = o.m.TryRun(t.Context(), "systemctl", "restart", "systemd-logind") // refused if the machine already goes down
			require.Eventually(t, func() bool {
				list, err := o.m.TryRun(t.Context(), "systemd-inhibit", "--list", "--no-legend")
				return o.isOff() || err == nil && strings.Contains(list, "kubegrace-node")
			}, time.Minute, ordealTick)
			last = time.Now()
			_, _ = o.m.TryRun(t.Context(), "systemctl", "poweroff") // fails if it is off
		},
	}
	last = asked
	names := []string{"agent", "containerd", "API server", "API server is back", "bus"}
	at, containerdDies := time.Duration(0), rng.IntN(2) == 0
	for range 1 + rng.IntN(5) {
		at += time.Duration(rng.IntN(3_000)) * time.Millisecond
		i := rng.IntN(len(faults))
		if i == 1 && !containerdDies { // once per power off at most, and in half of them never: kill the agent instead
			i = 0
		}
		containerdDies = containerdDies && i != 1
		select {
		case <-o.m.Ended():
			return done, last
		case <-time.After(time.Until(asked.Add(at))):
			faults[i]()
			done = append(done, fmt.Sprintf("%s at %v", names[i], time.Since(asked).Round(time.Millisecond)))
		}
	}
	return done, last
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

// remove removes the pods from the API server and from containerd, as a kubelet does, before the next power
// off.
func (o *ordeal) remove(t *testing.T, pods []*v1.Pod) {
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

// at returns when a pod's container last wrote its file in /seen with this ending (.term or .end); zero: it
// has not.
func (o *ordeal) at(t *testing.T, pod *v1.Pod, what string) time.Time {
	info, err := os.Stat(filepath.Join(o.seen, pod.Name+what))
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}
	}
	require.NoError(t, err)
	return info.ModTime()
}

// judgeContainers checks a power off by the files that the containers have written: each had SIGTERM in the
// order of priorities and its grace period, and ended before the machine did. It returns when they have ended. asked is when
// the machine was last asked to power off, and off when it was off.
func (o *ordeal) judgeContainers(t *testing.T, pods []*v1.Pod, asked, off time.Time) (ends map[types.UID]time.Time) {
	ends = map[types.UID]time.Time{}
	for i, pod := range pods {
		p, term, end := ordealPods[i], o.at(t, pod, ".term"), o.at(t, pod, ".end")
		require.False(t, term.IsZero(), "%s has had no SIGTERM", p.name)
		due := min(p.grace, p.work) // the least time from SIGTERM to the end
		if o.wasDown(term, p.grace) {
			due = min(due, ordealLeast)
		}
		assert.GreaterOrEqual(t, end.Sub(term), due-ordealStart, "%s must get its grace period", p.name)
		assert.True(t, end.Before(off), "%s must end before the machine", p.name)
		for j, previous := range pods[:i] {
			if ordealPods[j].priority < p.priority {
				assert.False(t, term.Before(ends[previous.UID]), "%s was told to stop before %s had ended", p.name, ordealPods[j].name)
			}
		}
		ends[pod.UID] = end
	}
	begins := slices.IndexFunc(o.m.Journal(t), func(e machine.Entry) bool {
		return e.MessageID == machine.ShuttingDown && e.Time.After(asked) && e.Time.Before(off)
	})
	if assert.GreaterOrEqual(t, begins, 0, "logind logs the shutdown") {
		at := o.m.Journal(t)[begins].Time
		assert.Less(t, at.Sub(asked), ordealLimit+ordealSlack, "the machine must go down within its limit")
		for i, pod := range pods {
			assert.True(t, ends[pod.UID].Before(at.Add(ordealTick)), "%s must end before logind proceeds with the shutdown", ordealPods[i].name)
		}
	}
	return ends
}

// wasDown reports whether containerd may have been down during a pod's grace period; term is when the pod had
// SIGTERM. Such a pod may get less than its grace period, though at least ordealLeast: its deadline does not
// move while the runtime is away.
func (o *ordeal) wasDown(term time.Time, grace time.Duration) bool {
	return o.died.After(term.Add(-grace)) && o.died.Before(term.Add(grace))
}

// judgeStatuses checks what the API server knows after the boot: each pod is Failed, with its container's exit
// code. It also checks, in the requests from index before on, that the end of no pod was reported before it
// happened.
func (o *ordeal) judgeStatuses(t *testing.T, pods []*v1.Pod, ends map[types.UID]time.Time, before int) {
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(o.pods(t), func(p v1.Pod) bool { return p.Status.Phase != v1.PodFailed })
	}, time.Minute, ordealTick, "the API server must know the end of each pod")
	for _, pod := range o.pods(t) {
		i := slices.IndexFunc(pods, func(p *v1.Pod) bool { return p.UID == pod.UID })
		assert.Equal(t, "Terminated", pod.Status.Reason, pod.Name)
		for _, c := range pod.Status.ContainerStatuses {
			if !assert.NotNil(t, c.State.Terminated, pod.Name) || c.State.Terminated.ExitCode == 255 { // containerd 2 gives 255 if a container ended while containerd was away
				continue
			}
			// A container may also have been killed, if containerd was down during its grace period.
			killed := c.State.Terminated.ExitCode == 128+9 && o.wasDown(o.at(t, &pod, ".term"), ordealPods[i].grace)
			assert.True(t, killed || c.State.Terminated.ExitCode == ordealPods[i].code, "exit code %d of %s", c.State.Terminated.ExitCode, pod.Name)
		}
	}
	for _, r := range o.api.Requests()[before:] {
		var patch struct {
			Status v1.PodStatus `json:"status"`
		}
		i := slices.IndexFunc(pods, func(p *v1.Pod) bool { return r.Verb == "patch" && p.Name == r.Name })
		if i >= 0 && json.Unmarshal(r.Body, &patch) == nil && patch.Status.Phase == v1.PodFailed {
			assert.True(t, r.Answered.IsZero() || r.Answered.After(ends[pods[i].UID]), "the API server was told of the end of %s before it was", r.Name)
		}
	}
}
