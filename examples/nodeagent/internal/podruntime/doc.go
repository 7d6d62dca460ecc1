// Package podruntime is the interface between the agent and the runtime that runs its
// pods. The agent starts a pod, and the library stops its containers through the same
// value:
//
//	containers, err := runtime.StartPod(ctx, pod)
//	if err != nil {
//		return err
//	}
//	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{
//		Runtime: runtime, Commands: runtime, Exits: runtime,
//	})
//
// Package cri implements it with a container runtime, package embedded with scripts in
// the process of the agent.
//
// # Concurrency properties
//
// All methods of a [Runtime] may be called concurrently, except [Runtime.StartPod] and
// [Runtime.StopPod] for the same pod.
//
// # Failure modes
//
// A StartPod that fails may leave containers behind; [Runtime.StopPod] removes them. A
// runtime need not be an [Adopter] or a [StatusReader]: the agent asks by a type
// assertion.
//
// # Testing
//
// Tests use the runtime of package embedded, which needs nothing of the host.
package podruntime
