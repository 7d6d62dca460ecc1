// Package virtualkubelet makes a provider for virtual-kubelet out of four methods. The
// author runs the containers, or whole pods at another place; this package starts and
// terminates pods as the kubelet does.
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
// code. Its methods know nothing of each other, of grace periods or of pods. In the file
// example_test.go they have some 40 lines and run processes:
//
//	StartContainer  start the container and return its ID
//	StopContainer   send TERM, wait for the timeout in seconds, kill; 0 kills at once
//	Exited          a channel that is closed when the container has exited
//	ExitCode        the exit code of a container that has exited, if it is known
//	RunInContainer  run a command in the container; only needed for exec hooks
//
// A runtime that cannot tell by itself when a container has exited is also a [RunningLister],
// and is polled. What is left of a container is removed by [Options.ContainerEnded].
//
// # Pods as a whole
//
// A [PodRuntime] takes the place of the Runtime where a pod runs as a whole: as a job, a virtual
// machine, or a pod of another cluster. The example of PodRuntime keeps its pods in memory;
// examples/virtualkubelet in the repository has one of 80 lines over HTTP.
//
//	Create    have the place create a pod
//	Stop      tell it to stop a pod, with a grace period
//	Statuses  all pods of this node that the place has; one request an interval
//	Delete    have it forget a pod that has ended and that the API server has deleted
//
// Each call is made again until the place has taken it, and Delete until its list lacks the pod.
// It is called for every pod that the place may have had.
// No pod is told to have ended before the place has said so. After a restart of the agent the
// first list tells what there is: those pods go on, and [Provider.GetPods], with which
// virtual-kubelet starts, waits for it, so that those are deleted that the API server has no
// more. A pod that appears in a list later, and that nobody has created for a minute, is stopped
// and deleted too: a Create that was lost has arrived after all.
//
// Hooks run only if the PodRuntime is a [lifecycle.CommandRunner]: preStop hooks, side by side.
// Otherwise they are the place's own, as postStart hooks, the order of containers and restarts
// always are. A job that ends within its grace period may be seen only after it, and then counts
// as killed: the outcome of a kill is exact to an interval.
//
// # What you no longer write
//
//   - Grace periods. Repeated calls of DeletePod only shorten the hook, the wait in the
//     stop order and the stop, at once (k/k#83916). A second call never restarts the
//     grace period, and neither does a restarted agent that adopts the pod.
//   - preStop and postStart hooks: exec, httpGet, sleep. Each hook runs once.
//   - The order: init containers one by one; sidecars start before the other containers
//     and stop after them, the last declared one first.
//   - Escalation: a runtime that fails is asked again, and one that does not answer is asked to
//     kill. The error names the containers that still run, and they are stopped again later.
//   - Races: no container starts in a pod that is being deleted (k/k#125050), and a pod
//     starts only when an earlier pod of the same name has ended.
//   - Statuses, including the final one: every container terminated with its exit code,
//     and the kubelet's reasons and phase. The statuses of a pod are sent in order.
//   - What virtual-kubelet requires without documenting it. It removes a deleted pod from
//     the API server as soon as no entry of ContainerStatuses is running, even if sidecars
//     run. Therefore no new status is sent while a pod is terminating.
//   - Restarts by the pod's restartPolicy, or the container's own, with the kubelet's
//     back-off: none, 10 s, twice as much each time up to 5 min, and none again for a
//     container that has run for 10 min. Init containers and starts that fail are repeated
//     likewise. [Options.MaxStarts] bounds the starts that are under way.
//   - Node shutdown: a Provider is a [shutdown.PodKiller], lists its pods, and refuses those
//     that [Options.Admit] does not admit.
//
// A pod has completed when its last regular container has exited and is not started again.
// The package runs no probes and knows no restart rules (KEP-5307), because the API of
// Kubernetes v0.33 has none.
//
// An agent on package lifecycle that does more stops a container of a pod that goes on with
// [lifecycle.Pod.KillContainer]. For RestartAllContainers (KEP-5532) it calls that for all
// containers at once with a grace period of 0, which leaves out the hooks, the order and the
// pod's grace period, and starts them again with [lifecycle.Pod.Start]; if the pod is deleted
// meanwhile, they end and Start refuses. During a termination [lifecycle.Termination.ShouldRestart]
// says whether a sidecar that has exited, or that KillContainer has stopped, must be started again
// (KEP-4438). A Provider does neither.
//
// # Stopping the agent
//
// [Provider.Close] leaves all pods running, as a restart of the agent requires. The next
// process takes them over with [Provider.Adopt], before virtual-kubelet runs. With nodeutil:
//
//	list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
//	for i := range list.Items { // of err == nil
//		pod := &list.Items[i]
//		running := machine.containersOf(pod.UID) // nil: those that run by the pod's status
//		err = errors.Join(err, provider.Adopt(ctx, virtualkubelet.Adopted{Pod: pod, Containers: running, Alive: pod.DeletionTimestamp == nil}))
//	}
//	err = virtual.Run(ctx) // of nodeutil.NewNode
//
// To drain the pods by the kubelet's
// schedule and with its statuses, when the agent is stopped or the node shuts down:
//
//	var manager *shutdown.Manager // is set before the first pod is created
//	options.Admit = func(pod *v1.Pod) shutdown.Admission { return manager.Admit(pod) }
//	provider, err := virtualkubelet.New(options)
//	...
//	manager, err = shutdown.NewManager(shutdown.Options{
//		Config: config, Source: host,
//		Pods: provider.Pods, Killer: provider,
//	})
//	...
//	report, err := manager.TerminateAll(ctx) // or: manager.Run(ctx), for the node
//	err = provider.Close(ctx)
//
// A pod is in the list of Pods before Admit is asked, so that a shutdown either finds and ends
// it or refuses it. One that is refused starts nothing: it is Failed, with the reason and
// message of a kubelet. virtual-kubelet has to run on while the pods end, so that new ones are
// refused rather than left pending.
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
// notifies virtual-kubelet, one that starts it, one for each container that runs or waits for
// its restart, and one for its termination; the provider has one that polls. Close waits for
// all of them. No mutex is held while the runtime,
// the callback or a status function runs. A callback that blocks delays only its own
// pod.
//
// # Failure modes
//
// If a container cannot be started, or an init container fails, and the restart policy does
// not repeat that, the pod ends as Failed. A container that could not be started has the reason
// StartError and the exit code 128. Containers that
// never started have the reason ContainerStatusUnknown and the exit code 137, as in the
// kubelet for containers that it cannot find.
//
// If the runtime stops a container whose exit cannot be watched, the exit code is unknown after
// [Options.ExitSlack]. If its exit can be watched and is not reported by then, the stop is not
// believed, and is asked for again. If the runtime cannot stop a container, the
// container and its pod stay running. Each further DeletePod tries again, without hooks
// and with no more grace, and returns an error, so that virtual-kubelet calls again.
//
// virtual-kubelet removes a deleted pod from the API server when its
// deletionGracePeriodSeconds are over, whether it has ended or not, and never earlier,
// even if the status is final. A pod without a running container it removes at once, and
// its DeletePod has no deletionGracePeriodSeconds.
//
// Errors are of virtual-kubelet's kinds: errdefs.IsNotFound is true for an unknown pod,
// errdefs.IsInvalidInput for a refused one, which from CreatePod also wraps
// [lifecycle.ErrTerminating] or [lifecycle.AgentStopping].
//
// # Testing
//
// Package lifecycletest has a runtime to which only StartContainer and ExitCode must be
// added. In a testing/synctest bubble an hour of grace passes at once: a Provider uses
// only the clock of package time and leaves no goroutine behind after Close. Other tests
// of this package run virtual-kubelet's PodController between a provider and a real API
// server, including the scenarios of virtual-kubelet's own tests. virtual-kubelet's
// end-to-end tests run against the example program.
//
// # Stability
//
// Experimental: what is exported may change in a patch release, and the changelog says how. It
// follows the interfaces of virtual-kubelet.
package virtualkubelet
