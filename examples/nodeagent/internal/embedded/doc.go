// Package embedded runs pods without containers, in the agent's own process, so
// that the agent can be tried on any machine:
//
//	rt := embedded.New()
//	containers, err := rt.StartPod(ctx, pod)
//
// What a container does when it is asked to stop stands in an annotation of its
// pod, nodeagent.kubegrace.dev/script.CONTAINER. It is made of these sentences,
// separated by commas; without one the container ends at once when it is asked to:
//
//	exits 3s after TERM          takes 3 s to end after its stop signal
//	ignores TERM                 ends only when it is killed
//	exits by itself after 5s     ends 5 s after its start, whatever happens
//	exec takes 2s                a command that a hook runs in it takes 2 s
//	exec fails                   such a command exits with an error
//	StopContainer fails          the runtime refuses to stop it
//	StopContainer hangs          the runtime does not answer when it is to stop it
//
// A plain init container ends when it "exits by itself", and at once if its script
// does not say so.
//
// # Concurrency properties
//
// All methods may be called concurrently. Containers are timers; no goroutine
// outlives a call.
//
// # Failure modes
//
// A script that cannot be read fails the start of its pod, and is found earlier,
// with its field and value, by [ValidateScripts]. Pods do not outlive the process.
//
// # Testing
//
// The containers are those of package lifecycletest, and work in
// testing/synctest bubbles.
package embedded
