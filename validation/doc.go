// Package validation says what is wrong, and what is only unwise, in the fields
// that decide how pods end: in a pod's spec as the API server says it, and in the
// shutdown settings of a node as the kubelet does.
//
//	func admit(gate *featuregate.FeatureGate, pod, stored *v1.Pod) error {
//		spec, path := &pod.Spec, field.NewPath("spec")
//		if stored == nil {
//			validation.DropDisabledFields(gate, spec, nil)
//			return validation.ValidatePodTermination(spec, validation.OptionsFor(gate, nil), path).ToAggregate()
//		}
//		validation.DropDisabledFields(gate, spec, &stored.Spec)
//		opts := validation.OptionsFor(gate, &stored.Spec)
//		return validation.ValidatePodTerminationUpdate(spec, &stored.Spec, opts, path).ToAggregate()
//	}
//
// A spec is expected with the API server's defaults filled in: without them a
// grace period, an HTTP path or a scheme that is not set is an error, as it is
// there. Only the fields of the termination are looked at, not what else a pod or
// a probe consists of.
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
// each, and begin with the field or the pod that they are about.
//
// # Testing
//
// The functions need no machine and no clock; the tests of this package run
// Kubernetes' own cases from testdata.
package validation
