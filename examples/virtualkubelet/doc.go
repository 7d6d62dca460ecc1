// Package virtualkubelet makes a provider of virtual-kubelet's out of four methods: the
// containers are the author's, and how they come to their end is kubegrace's.
//
//	provider, err := virtualkubelet.New(virtualkubelet.Options{Runtime: machine})
//	if err != nil {
//		return err
//	}
//	defer provider.Close(context.WithoutCancel(ctx))
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
// # What you write
//
// A [Runtime], that is how one container is started, stopped and run a command in, and
// how its exit is heard of. No method has to know of any other; for processes of the
// machine it reads:
//
//	type machine struct {
//		mu        sync.Mutex
//		processes map[string]*process // a command, and a channel closed once it has exited
//	}
//
//	func (m *machine) StartContainer(_ context.Context, pod *v1.Pod, c *v1.Container) (string, error) {
//		p := &process{cmd: exec.Command(c.Command[0], c.Command[1:]...), exited: make(chan struct{})}
//		if err := p.cmd.Start(); err != nil {
//			return "", err
//		}
//		go func() { defer close(p.exited); p.err = p.cmd.Wait() }()
//		return m.add(string(pod.UID)+"/"+c.Name, p), nil
//	}
//
//	func (m *machine) StopContainer(ctx context.Context, id string, timeoutSeconds int64) error {
//		p := m.get(id)
//		if p == nil {
//			return lifecycle.ErrContainerNotFound
//		}
//		if timeoutSeconds > 0 {
//			p.cmd.Process.Signal(syscall.SIGTERM)
//		}
//		select {
//		case <-p.exited:
//			return nil
//		case <-ctx.Done():
//			return ctx.Err()
//		case <-time.After(graceperiod.Duration(timeoutSeconds)):
//			return p.cmd.Process.Kill()
//		}
//	}
//
//	func (m *machine) Exited(id string) <-chan struct{} { return m.get(id).exited }
//	func (m *machine) ExitCode(id string) int32 { return int32(m.get(id).cmd.ProcessState.ExitCode()) }
//
// The example of [Provider] is that program whole, with played containers.
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
// # Testing
//
// Package lifecycletest has a runtime that lacks only StartContainer and ExitCode; the
// tests here add them, and pass an hour of grace in no time in testing/synctest
// bubbles. One test has virtual-kubelet's own PodController over client-go's clientset.
package virtualkubelet
