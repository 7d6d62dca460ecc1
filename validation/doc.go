// Package validation checks the fields that decide how pods terminate: those of a pod's
// spec by the rules of the API server, and the shutdown settings of a node by the rules of
// the kubelet. It returns errors for what is wrong, and warnings for what is allowed but
// unlikely to be wanted.
//
//	package main
//
//	import (
//		"fmt"
//
//		v1 "k8s.io/api/core/v1"
//		"k8s.io/apimachinery/pkg/util/validation/field"
//
//		"github.com/kubegrace/kubegrace/validation"
//	)
//
//	func main() {
//		grace := int64(10)
//		spec := &v1.PodSpec{
//			TerminationGracePeriodSeconds: &grace,
//			Containers: []v1.Container{{Name: "web", Lifecycle: &v1.Lifecycle{
//				PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 15}},
//			}}},
//		}
//		opts := validation.Options{} // every feature is on
//		for _, err := range validation.ValidatePodTermination(spec, opts, field.NewPath("spec")) {
//			fmt.Println(err) // spec.containers[0].lifecycle.preStop.sleep: Invalid value: 15: ...
//		}
//	}
//
// # Which function
//
// An API server calls [DropDisabledFields] and then [ValidatePodTerminationUpdate], whose
// argument old is nil for a new pod. [ValidatePodTermination] is for a spec by itself,
// such as a manifest or a pod template. [ValidateNodeShutdown] is for the configuration
// of a node. [WarnPodTermination] and [WarnNodeShutdown] return the warnings.
//
// The zero [Options] have every feature on, as Kubernetes has by default. A program with
// feature gates makes its options of them once, not for each pod:
//
//	opts := featuregates.Options(gate) // package validation/featuregates
//
// A spec must have the API server's defaults: an unset grace period, HTTP path or scheme
// is an error, as in the API server. Only the fields of the termination are checked.
//
// This package imports no feature gates and registers no metrics. Besides the standard
// library it depends on k8s.io/api, k8s.io/apimachinery, and pure packages of kubegrace.
//
// # What is checked
//
// The rules and their texts are those of the API server and the kubelet. These are the
// less obvious ones:
//
//   - terminationGracePeriodSeconds is required; a negative value is allowed. An update
//     may change a negative value to 1, and must not change any other value.
//   - A hook of a container or a sidecar has exactly one handler: exec, httpGet,
//     tcpSocket or sleep. Other init containers, and ephemeral containers, have no
//     lifecycle.
//   - A sleep is at least 0, or 1 without the feature, and at most the grace period, even
//     though the message says "less than" (KEP-3960, KEP-4818).
//   - A stopSignal needs spec.os.name. There are 65 names for linux, and SIGKILL and
//     SIGTERM for windows (KEP-4960).
//   - The grace period of a probe is more than 0, and only allowed for liveness and
//     startup probes (KEP-2238).
//   - The shutdown settings of a node give the kubelet's six errors, and errors for three
//     mistakes that the kubelet accepts.
//
// If a feature is off, [DropDisabledFields] removes its fields, and the Validate functions
// refuse fields that were not removed. Neither applies to a feature that the stored object
// uses ([Options.ForUpdate]).
//
// # Concurrency properties
//
// Only [DropDisabledFields] writes, to the spec that it is given; no other goroutine may
// use that spec meanwhile. The other functions are pure and may be called concurrently,
// also for the same pod. Nothing is kept between calls.
//
// # Failure modes
//
// Nothing panics: nil specs, nil fields and the extremes of int64 have a defined result.
// The errors are all errors of the spec, in its order; nil means that there are none. A
// warning is one sentence that begins with its subject.
//
// # Testing
//
// The functions need no clock and no fakes. The tests of this package run the cases of
// Kubernetes' own tests from testdata.
//
// # Stability
//
// Stable: from v0.1.0 on what is exported changes in a minor release only, and the changelog
// says how.
package validation
