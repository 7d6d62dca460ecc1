// Package embedded simulates pods in the agent's process, without containers, so that the agent can be tried
// on any machine:
//
//	pods, warnings, err := embedded.Load("kubegrace-node/demo/pods", featuregates.Options(gate))
//	runtime, err := embedded.New(pods)
//
// The annotation node.kubegrace.dev/script.CONTAINER of a pod is the script of a container. It says in YAML
// how the container reacts to its stop. A container without a script exits at once after its stop signal.
// Plain init containers count as ended from the beginning.
//
//	exitAfterTerm: 3s       the container takes 3 s to exit after its stop signal
//	ignoreTerm: true        the container exits only when it is killed
//	execTakes: 2s           a command that a hook runs in the container takes 2 s
//
// All methods may be called concurrently. Load fails if a manifest is not a pod, New if a script cannot be
// parsed. The pods end with the process. They work in testing/synctest bubbles.
package embedded
