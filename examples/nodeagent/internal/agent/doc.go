// Package agent starts the pods of a node and drains them when its host shuts down. It
// combines package lifecycle (one pod) with package shutdown (one node).
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
// The shutdown manager calls the [shutdown.PodKiller] of this package to kill a pod. The
// killer stops the containers with package podkiller and the terminator, and then removes
// the sandbox. Each running container has a goroutine that restarts it through the
// terminator when it has exited, by the kubelet's rules. Another goroutine starts and
// stops pods when the manifests change. With an API server the manager reports the
// shutdown there, and each pod has a goroutine that keeps its mirror pod up to date. A
// loop handles signals and updates the view ten times a second.
//
// # Concurrency properties
//
// An agent is run once, from one goroutine. All goroutines that Run starts have ended
// when it returns.
//
// # Failure modes
//
// A pod that cannot be started is reported, and the others run. A pod that cannot be
// stopped makes Run fail after the others were stopped. A host that cannot be watched is
// reported, and the connection is tried again forever. Pods outlive the agent if their
// runtime allows it: the agent stops pods only in a shutdown, on command, or when their
// manifests change.
//
// # Testing
//
// With the embedded runtime, no source and no listener an agent works in a
// testing/synctest bubble, where a shutdown takes no time; signals are a channel.
package agent
