// Package shutdown drains the pods of a node when its host shuts down: the
// kubelet's graceful node shutdown (KEP-2000, KEP-2712) for any node agent.
//
//	func run(ctx context.Context, config plan.Config, pods func() []*v1.Pod, killer shutdown.PodKiller) error {
//		source, err := logind.New(logind.Options{})
//		if err != nil {
//			return err
//		}
//		manager, err := shutdown.NewManager(shutdown.Options{
//			Config: config,
//			Pods:   pods,
//			Killer: killer,
//			Source: source,
//		})
//		if err != nil {
//			return err // says all that is wrong with the options
//		}
//		return manager.Run(ctx) // holds the host, and drains when it shuts down
//	}
//
// A [plan.Config] becomes a [plan.Schedule]: buckets of pods by priority, each with its
// seconds. When the [Source] says that the host shuts down, a [Manager] refuses new
// pods, has the node's state published, and goes through the buckets from the
// lowest: kill the pods, wait for them, for their volumes and for their final
// statuses. Then it stores a [Report] and closes the lock that has delayed the
// host. [Manager.Plan] says beforehand what that will do to which pod; package plan
// has the arithmetic and works without a manager.
//
// The host may be systemd (package logind), anything that can speak on a unix
// socket (package unixsocket), or nothing at all: [Manager.Trigger] begins a
// shutdown without a signal, and [Manager.TerminateAll] drains without one.
//
// # An agent with a Start of its own
//
// Where something else blocks, and what is wanted is a Start that returns when the host is
// held, or when it is known why not, as the kubelet has one:
//
//	func (a *agent) Start(ctx context.Context) error {
//		a.ended = make(chan error, 1)
//		go func() { a.ended <- a.manager.Run(ctx) }()
//		<-a.manager.Ready() // within two seconds of a host that does not answer
//		return a.manager.Inhibitor().Err
//	}
//
// The error is for the log: the manager goes on trying, so the agent goes on too. It waits
// for ended, after the end of ctx, before it ends itself.
//
// # Time
//
// The pods' time is theirs. Publishing, readiness marks, unmounts and final statuses
// come on top of it, and the host is asked to wait for all of it. Each bucket starts
// when the one before it is done, and time that its pods leave unused rolls over to
// later buckets. A host that waits for less than it is asked to first gets a drain
// with less time beside the kills, and then a smaller schedule, in which the highest
// priorities keep their time longest. The lock is never held past the host's own end,
// whoever hangs, nor for longer than the drain could need.
//
// # What the cluster hears
//
// A [Reporter] (package apistatus is one, over client-go) is told of the node's state
// before the first pod is stopped. What becomes of the pods is a [PodPolicy] per kind of
// shutdown: Failed with the kubelet's reason, left for a reboot that brings them back, or
// deleted as a drain would. A [StatusFlusher] gets the final status of each pod as it
// ends, ten at a time, beside everything else; what fails is tried again. Each bucket, and
// in the end the host, waits for the statuses as long as the server answers: until the
// last answer is two and a half seconds ago. A [ReadinessMarker] takes each pod out of its
// services before it is stopped, for a second at most. An API server that is dead costs
// the publishing, two and a half seconds once and the reserve of each further bucket, and
// the pods nothing. A pod that may still run is never said to have ended.
//
// Package podkiller has evictions for the same [PodKiller], and one that waits for them as
// the kubelet does.
//
// # Concurrency properties
//
// The event loop owns the state of the shutdown and reads one channel; it never waits for
// pods, for the host or for a reporter, and calls nothing of the embedder's, so that a
// cancellation is heard at any time. The keeper owns the session with the host and the one
// lock. A drain goes through the buckets of one shutdown in a goroutine of its own; if that
// is cancelled it signals no further pod and sees the others out, while a new shutdown may
// begin. None of their goroutines is left behind when Run returns.
//
// The functions of the [Options] are called in goroutines of their own, KillPod for all
// pods of a bucket at once. No mutex is held during them. All methods of a Manager may be
// called concurrently. Pods are read and never written to.
//
// # Failure modes
//
// The host cannot be reached, refuses the lock, or loses it: tried again for ever,
// every second; [Manager.Inhibitor] says why it is not held. It waits for
// less than the pods' time: it is held all the same, and a *[DelayCappedError] names
// the setting and the file that wins.
//
// A kill fails: it is tried again every second with what is left of the grace, until the
// host is let go or the error wraps [ErrNoRetry]. Code of the embedder hangs, panics or
// ends its goroutine: it has its bound, the failure is logged and stands in the [Report],
// and the host is let go in time, by a timer that the drain does not own. Run waits for
// such calls until ten seconds after the end of its context and of the host's time, and
// then gives an error that names them.
//
// The agent is restarted: with [Options.StateDir] it goes on where the former one
// was stopped, until the same end, if the host says that the shutdown goes on, or is
// reached and cannot say. If not, or when the time of the host is over, the shutdown is
// over: the node's state is taken back and the report closed. Pods are refused from
// [NewManager] on until that is known. Final statuses that the API server has not
// acknowledged are told by the next agent, also after a reboot, and their pods are not
// admitted before. A state file that is torn, foreign, or may be written to by others is
// named in the report and not believed; one that cannot be written costs the report, whose
// last state is tried again for a second before the host is let go. Two
// agents do not share a folder: the second waits for ten seconds and goes on without it; it
// holds the host meanwhile, and kills nobody before it knows what the first has left.
// Without a lock kept by the host (logind can, in systemd's FD store) the host does
// not wait for the restarted agent; the report says that too.
//
// The page testdata/faults.md has each step of a shutdown with each of these faults in it, and
// how the shutdown ended. A test draws it from what happens.
//
// # Testing
//
// Package shutdowntest has a host, a killer and a reporter that do what a test
// tells them to. Everything here works in bubbles of testing/synctest: timers are
// exact there, and an hour of shutdown takes a millisecond.
package shutdown
