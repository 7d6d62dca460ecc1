// Package virtualkubelet makes a provider for virtual-kubelet out of four methods. The
// author runs the containers; this package starts and terminates pods as the kubelet does.
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"log"
//		"time"
//
//		v1 "k8s.io/api/core/v1"
//		metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
//
//		"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
//		"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
//	)
//
//	// machine runs no containers yet, but plays them: StopContainer, Exited and ExitCode are
//	// those of lifecycletest.
//	type machine struct{ *lifecycletest.Runtime }
//
//	func (m machine) StartContainer(_ context.Context, pod *v1.Pod, c *v1.Container) (string, error) {
//		id := pod.Name + "/" + c.Name
//		m.Start(id, lifecycletest.Script{ExitAfterTerm: time.Second})
//		return id, nil
//	}
//
//	func main() {
//		ctx := context.Background()
//		provider, err := virtualkubelet.New(virtualkubelet.Options{Runtime: machine{lifecycletest.NewRuntime()}})
//		if err != nil {
//			log.Fatal(err)
//		}
//		phases := make(chan v1.PodPhase)
//		provider.NotifyPods(ctx, func(pod *v1.Pod) { phases <- pod.Status.Phase })
//		pod := &v1.Pod{
//			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"},
//			Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "nginx"}}},
//		}
//		if err := provider.CreatePod(ctx, pod); err != nil { // virtual-kubelet calls this
//			log.Fatal(err)
//		}
//		for phase := range phases {
//			fmt.Println(phase) // Pending, Running, Succeeded
//			switch phase {
//			case v1.PodRunning:
//				err = provider.DeletePod(ctx, pod) // and this
//			case v1.PodSucceeded:
//				if err = provider.Close(ctx); err == nil {
//					return
//				}
//			}
//			if err != nil {
//				log.Fatal(err)
//			}
//		}
//	}
//
// virtual-kubelet takes the provider as node.PodControllerConfig.Provider. A whole node to
// start from, with an API server, is examples/virtualkubelet in the repository; it uses
// virtual-kubelet's nodeutil. This package is a module of its own, so that other users of
// kubegrace do not inherit virtual-kubelet's dependencies.
//
// # What you write
//
// A [Runtime] starts and stops one container, and reports when it exits and with which
// code. Its methods know nothing of each other, of grace periods or of pods. In the
// package example they have some 40 lines and run processes:
//
//	StartContainer  start the container and return its ID
//	StopContainer   send TERM, wait for the timeout in seconds, kill; 0 kills at once
//	Exited          a channel that is closed when the container has exited
//	ExitCode        the exit code of a container that has exited
//	RunInContainer  run a command in the container; only needed for exec hooks
//
// # What you no longer write
//
//   - Grace periods. Repeated calls of DeletePod only shorten the hook, the wait in the
//     stop order and the stop, at once (k/k#83916). A second call never restarts the
//     grace period, and neither does a restarted agent that adopts the pod.
//   - preStop and postStart hooks: exec, httpGet, sleep. Each hook runs once.
//   - The order: init containers one by one; sidecars start before the other containers
//     and stop after them, the last declared one first.
//   - Escalation: if the runtime fails or does not answer, it is asked to kill. The error
//     names the containers that still run, and they are stopped again later.
//   - Races: no container starts in a pod that is being deleted (k/k#125050), and a pod
//     starts only when an earlier pod of the same name has ended.
//   - Statuses, including the final one: every container terminated with its exit code,
//     and the kubelet's reasons and phase. The statuses of a pod are sent in order.
//   - What virtual-kubelet requires without documenting it. It removes a deleted pod from
//     the API server as soon as no entry of ContainerStatuses is running, even if sidecars
//     run. Therefore no new status is sent while a pod is terminating.
//   - Node shutdown: a Provider is a [shutdown.PodKiller] and lists its pods.
//
// The package restarts no container: when a container has exited, the pod goes on with
// the others, and it has completed when its last regular container has exited. It runs no
// probes.
//
// # Stopping the agent
//
// [Provider.Close] leaves all pods running, as a restart of the agent requires. The next
// process takes them over with [Provider.Adopt]. To drain the pods by the kubelet's
// schedule and with its statuses, when the agent is stopped or the node shuts down:
//
//	manager, err := shutdown.NewManager(shutdown.Options{
//		Config: config, Source: host,
//		Pods: provider.Pods, Killer: provider,
//	})
//	...
//	report, err := manager.TerminateAll(ctx) // or: manager.Run(ctx), for the node
//	err = provider.Close(ctx)
//
// A pod that is both drained and deleted, in any order, has one termination. Its status
// is final in both cases: a shutdown policy that leaves statuses unchanged does not work
// here, because virtual-kubelet is notified.
//
// # Concurrency properties
//
// All methods may be called concurrently. CreatePod, UpdatePod and DeletePod return at
// once and do the work in the background, because one worker of virtual-kubelet makes
// all calls for a pod and must be free for the next one. A pod has one goroutine that
// notifies virtual-kubelet, one that starts it, one for each running container, and one
// for its termination. Close waits for all of them. No mutex is held while the runtime,
// the callback or a status function runs. A callback that blocks delays only its own
// pod.
//
// # Failure modes
//
// If a container cannot be started, or an init container fails, the pod ends as Failed.
// The container then has the reason StartError and the exit code 128. Containers that
// never started have the reason ContainerStatusUnknown and the exit code 137, as in the
// kubelet for containers that it cannot find.
//
// If the runtime stops a container but does not report its exit within
// [Options.ExitSlack], the exit code is unknown too. If it cannot stop a container, the
// container and its pod stay running. Each further DeletePod tries again, without hooks
// and with no more grace, and returns an error, so that virtual-kubelet calls again.
//
// virtual-kubelet removes a deleted pod from the API server when its
// deletionGracePeriodSeconds are over, whether it has ended or not, and never earlier,
// even if the status is final. A pod without a running container it removes at once, and
// its DeletePod has no deletionGracePeriodSeconds.
//
// Errors are of virtual-kubelet's kinds: errdefs.IsNotFound is true for an unknown pod,
// errdefs.IsInvalidInput for a refused one, which also wraps [lifecycle.ErrTerminating]
// or [lifecycle.AgentStopping].
//
// # Testing
//
// Package lifecycletest has a runtime to which only StartContainer and ExitCode must be
// added. In a testing/synctest bubble an hour of grace passes at once: a Provider uses
// only the clock of package time and leaves no goroutine behind after Close. Other tests
// of this package run virtual-kubelet's PodController between a provider and a real API
// server, including the scenarios of virtual-kubelet's own tests. virtual-kubelet's
// end-to-end tests run against the example program.
package virtualkubelet
