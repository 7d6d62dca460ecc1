// Package embedded plays pods in the process of the agent, without containers, so that
// the agent can be tried on any machine:
//
//	pods, warnings, err := embedded.Load("nodeagent/demo/pods", featuregates.Options(gate))
//	runtime, err := embedded.New(pods)
//
// An annotation of the pod, nodeagent.kubegrace.dev/script.CONTAINER, is the script of a
// container: sentences, separated by commas, that say how it reacts to its stop. Without one the container
// exits at once after its stop signal. Plain init containers have ended before.
//
//	exits 3s after TERM          takes 3 s to exit after its stop signal
//	ignores TERM                 exits only when it is killed
//	exec takes 2s                a command that a hook runs in it takes 2 s
//
// All methods may be called concurrently. Load and New fail if a script cannot be parsed. Pods end
// with the process, and work in testing/synctest bubbles.
package embedded
