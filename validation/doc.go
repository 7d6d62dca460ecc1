// Package validation checks the fields that decide how pods terminate: those of a pod's spec by the rules of
// the API server, and the shutdown settings of a node by the rules of the kubelet. It returns errors for
// invalid values and warnings for values that are valid but probably not intended.
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
// [DropDisabledFields] removes the fields of features that are off, as the API server does, and then
// [ValidatePodTermination] checks a spec, such as a manifest or a pod template.
// [ValidateNodeShutdown] checks the configuration of a node. [WarnPodTermination] and [WarnNodeShutdown]
// return warnings.
//
// In the zero [Options] every feature is on. A program with feature gates converts them once:
//
//	opts := featuregates.Options(gate) // package validation/featuregates
//
// Set the API server's defaults in a spec first: an unset grace period, HTTP path or scheme is an error.
//
// # Rules
//
// Rules and messages are those of the API server and the kubelet. These are less obvious:
//
//   - terminationGracePeriodSeconds is required. A negative value is valid.
//   - A hook of a container or a sidecar has exactly one handler: exec, httpGet, tcpSocket or sleep. Other
//     init containers, and ephemeral containers, have no lifecycle.
//   - A sleep is at least 0 (1 if zero sleeps are off) and at most the grace period, although the message says
//     "less than" (KEP-3960, KEP-4818).
//   - A stopSignal requires spec.os.name. Linux has 65 names, Windows SIGKILL and SIGTERM (KEP-4960).
//   - The grace period of a probe is more than 0, and only allowed in liveness and startup probes (KEP-2238).
//   - The shutdown settings of a node have the kubelet's six errors, and errors for three mistakes that the
//     kubelet accepts.
//
// If a feature is off, [DropDisabledFields] removes its fields, and the Validate functions reject the
// remaining ones. A feature that the stored object uses counts as on ([Options.ForUpdate]).
//
// # Failures
//
// Nothing panics: nil specs, nil fields and extreme values have a defined result. All errors of a spec are
// returned, in its order; nil means none.
//
// # Concurrency
//
// Only [DropDisabledFields] writes to its spec. All other functions are pure and may be called concurrently,
// even for the same pod.
//
// # Testing
//
// Nothing needs to be faked. This package's tests run the cases of Kubernetes' own tests.
//
// # Stability
//
// v0: minor releases may change exported names; the changelog says how.
package validation
