// Package validation says what is wrong, and what is only unwise, in the fields
// that decide how pods end: in a pod's spec as the API server says it, and in the
// shutdown settings of a node as the kubelet does.
//
//	func admit(pod, stored *v1.Pod, opts validation.Options) error {
//		var old *v1.PodSpec // nil: a new pod
//		if stored != nil {
//			old = &stored.Spec
//		}
//		validation.DropDisabledFields(&pod.Spec, old, opts)
//		return validation.ValidatePodTerminationUpdate(&pod.Spec, old, opts, field.NewPath("spec")).ToAggregate()
//	}
//
// The zero [Options] have every feature on, as Kubernetes has them by default. A
// program with feature gates makes its options of them once, not for each pod:
//
//	opts := featuregates.Options(gate) // package validation/featuregates
//
// A spec is expected with the API server's defaults filled in: without them a
// grace period, an HTTP path or a scheme that is not set is an error, as it is
// there. Only the fields of the termination are looked at, not what else a pod or
// a probe consists of.
//
// This package imports no feature gate and registers no metric: besides the standard
// library it reaches k8s.io/api and k8s.io/apimachinery, what these need, and pure
// packages of kubegrace.
//
// # What is checked
//
// The rules and their texts are the API server's and the kubelet's; these are the
// ones that surprise:
//
//   - terminationGracePeriodSeconds: required, and let pass when it is negative. An
//     update may change it from a negative value to 1, and in no other way.
//   - Hooks of containers and sidecars: exactly one handler, of which exec, httpGet,
//     tcpSocket and sleep come in this order. Other init containers and ephemeral
//     ones have no lifecycle at all.
//   - sleep: from 0, or from 1 without its feature, up to and with the grace period,
//     in spite of the message (KEP-3960, KEP-4818).
//   - stopSignal: only with spec.os.name; 65 names for linux, SIGKILL and SIGTERM
//     for windows (KEP-4960).
//   - Probes: a grace period above 0, for liveness and startup only (KEP-2238).
//   - The node: the kubelet's six messages, then what it forgets.
//
// A feature that is off acts twice: [DropDisabledFields] takes its fields out, and
// what validates refuses them. Both leave a stored object what it has
// ([Options.ForUpdate]). To validate without dropping refuses a field whose feature
// is off.
//
// # Concurrency properties
//
// Every function is pure, except that [DropDisabledFields] writes into the spec
// it is given; it may not be called while that spec is read. The others may be
// called from any goroutine on shared pods. Nothing is kept between calls.
//
// # Failure modes
//
// Nothing panics: nil specs, nil fields and the extremes of int64 have a defined
// result. An error list is nil if nothing is wrong and else holds everything that
// is, in the order of the spec. Warnings refuse nothing; they are one sentence
// each, and begin with what they are about.
//
// # Testing
//
// The functions need no machine and no clock; the tests of this package run
// Kubernetes' own cases from testdata.
package validation
