// Package featuregates converts Kubernetes feature gates to the options of package validation.
//
//	package main
//
//	import (
//		"fmt"
//		"log"
//
//		"k8s.io/component-base/featuregate"
//
//		"github.com/kubegrace/kubegrace/lifecycle"
//		"github.com/kubegrace/kubegrace/validation/featuregates"
//	)
//
//	func main() {
//		gate := featuregate.NewFeatureGate() // or utilfeature.DefaultFeatureGate
//		if err := lifecycle.AddFeatureGates(gate); err != nil {
//			log.Fatal(err)
//		}
//		if err := gate.Set("ContainerStopSignals=false"); err != nil { // --feature-gates
//			log.Fatal(err)
//		}
//		opts := featuregates.Options(gate) // for all calls of package validation
//		fmt.Println(opts.NoStopSignals)    // true
//	}
//
// It is a separate package because k8s.io/component-base/featuregate imports about sixty packages and
// registers metrics.
//
// # Failures
//
// None. If the gate is nil or does not have a feature, the feature is on.
//
// # Concurrency
//
// [Options] may be called concurrently, even while the gate is being set. It takes a few hundred microseconds
// for a kubelet's gates: call it once at the start, not for each pod.
//
// # Testing
//
// Create a gate with featuregate.NewFeatureGate, or use a literal of [validation.Options].
//
// # Stability
//
// v0: minor releases may change exported names; the changelog says how.
package featuregates
