// Package virtualkubelet makes a provider of virtual-kubelet's out of four methods: the
// containers are the author's, and how they come to their end is kubegrace's.
//
//	provider, err := virtualkubelet.New(virtualkubelet.Options{Runtime: machine})
//	if err != nil {
//		return err
//	}
//	defer provider.Close(context.WithoutCancel(ctx)) // leaves the pods running
//
//	controller, err := node.NewPodController(node.PodControllerConfig{
//		Provider:  provider,
//		PodClient: client.CoreV1(),
//		// informers and recorder, as for any provider
//	})
//	if err != nil {
//		return err
//	}
//	return controller.Run(ctx, 10)
//
// A whole program to start from, with virtual-kubelet's nodeutil in the place of the
// controller, is examples/virtualkubelet of the repository. The package is a module of its
// own, so that nobody else inherits what virtual-kubelet requires.
//
// # What you write
//
// A [Runtime]: how one container is started and stopped, when it has exited, and with
// which code. No method has to know of any other, of grace periods or of pods. In the
// example below they are some 40 lines, and run processes:
//
//	StartContainer  start it, and say what its ID is
//	StopContainer   send TERM, wait for the timeout in seconds, kill; 0 kills at once
//	Exited          a channel that is closed once it has exited
//	ExitCode        of one that has
//	RunInContainer  run a command in it; only where exec hooks are to work
//
// # What you no longer write
//
//   - Grace periods. DeletePod called again and again only shortens, at once: the
//     hook, the wait for a turn and the stop (k/k#83916). It never starts afresh, not
//     for a second call and, where the pod is adopted, not for a second agent.
//   - preStop and postStart hooks: exec, httpGet, sleep. Each runs once.
//   - The order: init containers one by one, sidecars before the others and after
//     them, the last declared ending first.
//   - Escalation: a runtime that fails or is silent is asked to kill; what remains is
//     named, and tried again.
//   - Races: a container never starts in a pod that is being deleted (k/k#125050), and
//     a new pod of a former one's name starts when that one has ended.
//   - Statuses, up to the final one: every container terminated with its exit code,
//     the kubelet's reasons and phase. They are told one after the other.
//   - What virtual-kubelet needs and does not say. It removes a deleted pod from the
//     API server, unasked, as soon as no entry of ContainerStatuses is running, sidecars
//     or not: while a pod is being terminated, the last status stands.
//   - Node shutdown: a Provider is a [shutdown.PodKiller], and knows its pods.
//
// It restarts no container: the pod of a container that has exited goes on with those
// left, and has ended when its last regular one has. Probes are not run.
//
// # Stopping the agent
//
// [Provider.Close] leaves all pods running, which is what a restart wants; the next
// life takes them over with [Provider.Adopt]. To drain them, by the kubelet's schedule
// and with its statuses, when the agent is told to or when the node shuts down:
//
//	manager, err := shutdown.NewManager(shutdown.Options{
//		Config: config, Source: host,
//		Pods: provider.Pods, Killer: provider,
//	})
//	...
//	report, err := manager.TerminateAll(ctx) // or: manager.Run(ctx), for the node
//	err = provider.Close(ctx)
//
// A pod that is drained and then deleted, or the other way round, has one termination.
// Its status is final in either case: a policy that leaves statuses as they are does
// not go with virtual-kubelet, which is told.
//
// # Concurrency properties
//
// All methods may be called concurrently. CreatePod, UpdatePod and DeletePod return
// at once: what takes time is done beside them, so that virtual-kubelet's workers, of
// which one has all calls of a pod, are free to bring the next one. A pod has a
// goroutine that tells of it, one that starts it, one for each of its containers
// that runs, and one for its termination. Close waits for all of them. No mutex is
// held while the runtime, the callback or a status function is called; those of one pod
// are told in order, and a callback that blocks holds up no other pod.
//
// # Failure modes
//
// A container that cannot be started, or an init container that fails, ends the pod,
// which is then Failed: the container has the reason StartError and the exit code 128.
// Those that never started have the reason ContainerStatusUnknown and the code 137, as
// the kubelet has it for containers that it cannot find.
//
// A runtime that stops a container and does not tell of its exit within
// [Options.ExitSlack] leaves that end unknown, too. One that cannot stop a container
// leaves it, and its pod, as running; each further DeletePod tries once more, without a
// hook and with no more grace, and returns an error, so that virtual-kubelet comes again.
//
// virtual-kubelet removes a deleted pod from the API server when its
// deletionGracePeriodSeconds are over, ended or not, and does not do so before, though
// its status be final. A pod of which nobody is running when it is deleted it removes at
// once, and asks for it without any deletionGracePeriodSeconds.
//
// Errors are of virtual-kubelet's kinds: errdefs.IsNotFound tells a pod that is not
// known, errdefs.IsInvalidInput one that is refused; errors.Is finds
// [lifecycle.ErrTerminating] and [lifecycle.AgentStopping] behind the latter.
//
// # Testing
//
// Package lifecycletest has a runtime that lacks only StartContainer and ExitCode; the
// tests here add them, and pass an hour of grace in no time in testing/synctest
// bubbles: a Provider uses no clock but that of package time, and leaves no goroutine
// behind its Close. Some tests have virtual-kubelet's own PodController between a
// provider and a real API server; the scenarios of virtual-kubelet's own tests are among
// them, and its end-to-end tests run beside the example program.
package virtualkubelet
