//go:build unix

package virtualkubelet_test

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
	"github.com/kubegrace/kubegrace/shutdown"
)

// machine is a Runtime that runs containers as processes.
type machine struct{ processes sync.Map } // *process by ID

type process struct {
	cmd       *exec.Cmd
	pod       types.UID
	container lifecycle.Container
	exited    chan struct{} // closed on exit
}

func (m *machine) StartContainer(_ context.Context, pod *v1.Pod, c *v1.Container) (string, error) {
	p := &process{cmd: exec.Command(c.Command[0], c.Command[1:]...), pod: pod.UID, exited: make(chan struct{})}
	if err := p.cmd.Start(); err != nil {
		return "", err
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // ProcessState has the exit code
	}()
	id := fmt.Sprintf("%s/%s/%d", pod.UID, c.Name, p.cmd.Process.Pid)
	p.container = lifecycle.Container{Name: c.Name, ID: id, Began: time.Now()}
	m.processes.Store(id, p)
	return id, nil
}

func (m *machine) Running(_ context.Context, pod *v1.Pod) (running []lifecycle.Container, err error) {
	m.processes.Range(func(_, value any) bool {
		p, _ := value.(*process)
		select {
		case <-p.exited:
		default:
			if p.pod == pod.UID {
				running = append(running, p.container)
			}
		}
		return true
	})
	return running, nil
}

func (m *machine) StopContainer(ctx context.Context, id string, timeoutSeconds int64) error {
	p := m.process(id)
	if p == nil {
		return lifecycle.ErrContainerNotFound
	}
	if timeoutSeconds > 0 {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails if the process has exited
	}
	select {
	case <-p.exited:
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(graceperiod.Duration(timeoutSeconds)):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
	return nil
}

func (m *machine) Exited(id string) <-chan struct{} { return m.process(id).exited }

func (m *machine) ExitCode(id string) (int32, bool) {
	return int32(m.process(id).cmd.ProcessState.ExitCode()), true
}

func (m *machine) process(id string) *process {
	p, _ := m.processes.Load(id)
	found, _ := p.(*process)
	return found
}

// The pod has a preStop hook that sleeps for two hours. It is deleted with a grace period of one hour, and again with 1 s,
// which ends the hook after 1 s. A third deletion with 30 s does not lengthen the grace period.
func Example() {
	ctx := context.Background()
	provider, err := virtualkubelet.New(virtualkubelet.Options{Runtime: &machine{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	statuses := make(chan v1.PodStatus, 10)
	provider.NotifyPods(ctx, func(pod *v1.Pod) { statuses <- pod.Status })

	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "a"},
		Spec: v1.PodSpec{Containers: []v1.Container{{
			Name: "nginx", Command: []string{"sleep", "600"},
			Lifecycle: &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 7200}}},
		}}},
	}
	if err := provider.CreatePod(ctx, pod); err != nil {
		fmt.Println(err)
	}
	fmt.Println(await(statuses, v1.PodRunning).Phase)

	for _, seconds := range []int64{3600, 1, 30} {
		deletion := pod.DeepCopy()
		deletion.DeletionTimestamp = ptr.To(metav1.NewTime(time.Now().Add(graceperiod.Duration(seconds))))
		deletion.DeletionGracePeriodSeconds = &seconds
		if err := provider.DeletePod(ctx, deletion); err != nil {
			fmt.Println(err)
		}
	}
	final := await(statuses, v1.PodFailed)
	fmt.Println(final.Phase, final.ContainerStatuses[0].State.Terminated.Reason)
	if err := provider.Close(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Running
	// Failed Error
}

// await returns the first status with the phase.
func await(statuses <-chan v1.PodStatus, phase v1.PodPhase) v1.PodStatus {
	for status := range statuses {
		if status.Phase == phase {
			return status
		}
	}
	return v1.PodStatus{}
}

// sleeper returns a pod with a container that sleeps until it gets SIGTERM.
func sleeper(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Command: []string{"sleep", "600"}}}},
	}
}

// The provider lists and kills the pods for a shutdown.Manager, with which the agent drains them.
func ExampleProvider_KillPod() {
	ctx := context.Background()
	provider, err := virtualkubelet.New(virtualkubelet.Options{Runtime: &machine{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	statuses := make(chan v1.PodStatus, 10)
	provider.NotifyPods(ctx, func(pod *v1.Pod) { statuses <- pod.Status })
	if err := provider.CreatePod(ctx, sleeper("web")); err != nil {
		fmt.Println(err)
	}
	await(statuses, v1.PodRunning)

	manager, err := shutdown.NewManager(shutdown.Options{ListPods: provider.Pods, Killer: provider})
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := manager.TerminateAll(ctx)
	if err != nil {
		fmt.Println(err)
	}
	for _, pod := range report.Pods {
		fmt.Println(pod.Name, pod.Outcome)
	}
	final := await(statuses, v1.PodFailed)
	left, err := provider.Pods(ctx)
	fmt.Println(final.Reason, len(left), err)
	if err := provider.Close(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// web Graceful
	// Terminated 0 <nil>
}

// The provider of a restarted agent adopts the pods that the previous one has left running. The runtime must
// still know their containers.
func ExampleProvider_Adopt() {
	ctx := context.Background()
	runtime := &machine{}
	statuses := make(chan v1.PodStatus, 10)
	start := func() *virtualkubelet.Provider {
		provider, err := virtualkubelet.New(virtualkubelet.Options{Runtime: runtime})
		if err != nil {
			panic(err)
		}
		provider.NotifyPods(ctx, func(pod *v1.Pod) { statuses <- pod.Status })
		return provider
	}
	previous := start()
	if err := previous.CreatePod(ctx, sleeper("web")); err != nil {
		fmt.Println(err)
	}
	await(statuses, v1.PodRunning)
	pod, err := previous.GetPod(ctx, "shop", "web") // has the container IDs
	if err != nil {
		fmt.Println(err)
	}
	if err := previous.Close(ctx); err != nil { // the pod keeps running
		fmt.Println(err)
	}

	provider := start()
	if err := provider.Adopt(ctx, virtualkubelet.Adopted{Pod: pod, Alive: true}); err != nil {
		fmt.Println(err)
	}
	pods, err := provider.Pods(ctx)
	fmt.Println(len(pods), "pod", err)
	if err := provider.DeletePod(ctx, pod); err != nil {
		fmt.Println(err)
	}
	fmt.Println(await(statuses, v1.PodFailed).Phase)
	if err := provider.Close(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1 pod <nil>
	// Failed
}
