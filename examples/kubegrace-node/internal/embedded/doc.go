// Package embedded plays pods in the process of the agent, without containers, so that
// the agent can be tried on any machine:
//
//	pods, warnings, err := embedded.Load("kubegrace-node/demo/pods", featuregates.Options(gate))
//	runtime, err := embedded.New(pods)
//
// An annotation of the pod, node.kubegrace.dev/script.CONTAINER, is the script of a
// container, in YAML, that says how it reacts to its stop. Without one the container
// exits at once after its stop signal. Plain init containers have ended before.
//
//	exitAfterTerm: 3s       takes 3 s to exit after its stop signal
//	ignoreTerm: true        exits only when it is killed
//	execTakes: 2s           a command that a hook runs in it takes 2 s
//
// All methods may be called concurrently. Load fails if a manifest is no pod, New if a script cannot be read. Pods end
// with the process, and work in testing/synctest bubbles.
package embedded
