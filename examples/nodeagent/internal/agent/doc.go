// Package agent starts the pods of a node and drains them when its host shuts
// down: it puts package lifecycle (one pod) and package shutdown (one node)
// together.
//
//	a, err := agent.New(agent.Options{
//		Config:  cfg.Shutdown,
//		Pods:    pods,
//		Runtime: embedded.New(),
//		Signals: signals,
//		View:    view.New(os.Stdout, nil),
//	})
//	if err != nil {
//		return err
//	}
//	return a.Run(ctx)
//
// What flows where: the manager asks the [shutdown.PodKiller] of this package to
// kill a pod; that has package podkiller stop its containers with the terminator, and
// removes the sandbox. Each container that runs has a goroutine that starts it again when
// it has exited, by the kubelet's rules, through the terminator; another one makes the
// pods those of the manifests when these change. With an API server the manager tells it
// of the shutdown, and beside all that each pod's mirror is kept there. A loop hears
// signals and, ten times a second, shows what has changed.
//
// # Concurrency properties
//
// An agent is run once, from one goroutine. All goroutines that Run starts have
// ended when it returns.
//
// # Failure modes
//
// A pod that cannot be started is reported, and the others run. A pod that cannot
// be stopped makes Run fail, after the others were stopped. A host that cannot be
// watched is reported and asked again, without end. Pods outlive the agent where
// their runtime lets them: it never stops one but in a shutdown.
//
// # Testing
//
// With the embedded runtime, no source and no listener an agent works in a
// testing/synctest bubble, where a shutdown takes no time; signals are a channel.
package agent
