// Package podkiller makes the [lifecycle.Terminator] of an agent the
// [shutdown.PodKiller] of its drain and of its evictions:
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
// It is the one package that knows both engines; neither knows the other. An agent that
// keeps a list of what runs gives that as [Options.Containers], and needs no statuses.
//
// # Concurrency properties
//
// All functions and methods may be called concurrently. A pod that is killed twice, by a
// drain and by an eviction, has one termination, which only gets shorter. [New] starts no
// goroutine. [Timed] has one for each kill, which [TimedKiller.Wait] waits for.
//
// # Failure modes
//
// Containers that could not be stopped are an error, and the final status is then not
// given: a pod is not said to have ended while something of it may run. Where
// [Options.Status] is nil no exit code is known to the reporter. A kill waits for the
// functions of [Options] even when its context has ended: they have to heed it.
//
// # Testing
//
// Package lifecycletest has a runtime for the terminator, and works in testing/synctest
// bubbles as this package does.
package podkiller
