// Package manifest reads the pods of a node from a folder, as the kubelet reads
// its static pods:
//
//	pods, warnings, err := manifest.Load("/etc/kubegrace/pods", featuregates.Options(gate))
//
// Files that end in .yaml, .yml or .json are read, in the order of their names;
// a file may have several documents. Each must be a v1 Pod.
//
// What the API server would fill in and a termination depends on is filled in:
// the namespace "default", a terminationGracePeriodSeconds of 30, restartPolicy
// Always, path and scheme of an httpGet hook. A pod without a UID gets one that
// depends on its file and name only, so that a restarted agent knows its pods
// again, and the annotation kubernetes.io/config.source=file makes it a static pod.
// Fields whose feature gate is off are dropped, and what concerns the termination is
// checked as by the API server (package validation).
//
// # Concurrency properties
//
// Functions only, without state. The one goroutine of Watch ends with its context.
//
// # Failure modes
//
// All that is wrong in a folder is said at once: the error joins one line for
// each problem, which names file, field and value. No pod is returned then. A
// file that is left out is a warning, and so is what is allowed and will still not
// do what its author may think.
//
// # Testing
//
// Load reads a real folder; a test writes one to t.TempDir.
package manifest
