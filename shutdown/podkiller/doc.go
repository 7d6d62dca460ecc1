// Package podkiller makes an agent's [lifecycle.Terminator] the [shutdown.PodKiller] of
// its node shutdowns and of its evictions:
//
//	killer := podkiller.New(terminator, podkiller.Options{Status: runtime.PodStatus})
//	manager, err := shutdown.NewManager(shutdown.Options{Killer: killer, ...})
//
//	evictions := podkiller.Timed(killer, recorder)
//	defer evictions.Wait()
//	if podkiller.Evictable(pod) {
//		_, err = evictions.KillPod(ctx, pod, podkiller.SoftEviction(pod, 30, "The node was low on resource: memory."))
//	}
//
// Packages lifecycle and shutdown do not import each other; this package imports both.
// An agent that keeps a list of its running containers passes that as
// [Options.Containers] and needs no statuses.
//
// # Concurrency properties
//
// All functions and methods may be called concurrently. A pod that is killed by a
// shutdown and by an eviction has one termination, whose deadline only moves earlier.
// A killer of [New] starts no goroutine of its own. [TimedKiller.KillPod] starts one for
// each kill; [TimedKiller.Wait] waits for them.
//
// # Failure modes
//
// If a container could not be stopped, KillPod returns an error and no final status,
// because the pod may still run. If [Options.Status] is nil, the reporter of the shutdown
// learns no exit codes. KillPod waits for the functions of [Options] even when its
// context has ended, so they must return when their ctx ends.
//
// # Testing
//
// Package lifecycletest has a runtime for the terminator. It works in testing/synctest
// bubbles, and so does this package.
package podkiller
