// Package featuregates converts Kubernetes feature gates to the options of package
// validation.
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
// The package is separate from validation because k8s.io/component-base/featuregate
// imports about sixty packages and registers metrics. Programs without feature gates do
// not need it.
//
// # Concurrency properties
//
// [Options] may be called concurrently, also while the gate is being set. It reads the
// whole gate, which takes a few hundred microseconds for the gates of a kubelet: call it
// when the program starts, not for each pod.
//
// # Failure modes
//
// There are none: if the gate is nil or lacks a feature, the feature is on.
//
// # Testing
//
// A test can make a gate with featuregate.NewFeatureGate, or needs no gate and uses a
// literal of [validation.Options].
//
// # Stability
//
// Stable: from v0.1.0 on what is exported changes in a minor release only, and the changelog
// says how.
package featuregates
