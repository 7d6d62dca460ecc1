// Package featuregates turns Kubernetes feature gates into the options of package
// validation, for programs that have gates:
//
//	opts := featuregates.Options(utilfeature.DefaultFeatureGate) // once, when the program starts
//	...
//	errs := validation.ValidatePodTermination(&pod.Spec, opts, path) // for each pod
//
// It is apart from validation because k8s.io/component-base/featuregate brings about
// sixty packages and registers metrics, which no program without gates should have to
// carry.
//
// # Concurrency properties
//
// [Options] may be called from any goroutine, also while the gate is being set; it
// keeps nothing. It reads the whole gate, which takes a few hundred microseconds with
// the gates of a kubelet: call it when the program starts, not for each pod.
//
// # Failure modes
//
// There are none: a gate that is nil, or that lacks a feature, gives that feature's
// default.
//
// # Testing
//
// featuregate.NewFeatureGate makes a gate for a test; a test that needs no gate uses a
// literal of [validation.Options].
package featuregates
