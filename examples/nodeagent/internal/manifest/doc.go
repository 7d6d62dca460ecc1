// Package manifest reads the pods of a node from a folder, as the kubelet reads its
// static pods:
//
//	pods, warnings, err := manifest.Load("/etc/kubegrace/pods", featuregates.Options(gate))
//	if err != nil {
//		return err
//	}
//	changed, err := manifest.Watch(ctx, "/etc/kubegrace/pods")
//
// Load reads the files that end in .yaml, .yml or .json, in the order of their names. A
// file may have several documents. Each must be a v1 Pod.
//
// Load sets the defaults of the API server that a termination depends on: the namespace
// "default", a terminationGracePeriodSeconds of 30, restartPolicy Always, path and scheme
// of httpGet hooks. A pod without a UID gets one that depends only on its file and name,
// so that a restarted agent finds its pods by it. The annotation
// kubernetes.io/config.source=file marks each pod as static. Fields whose feature gate is
// off are dropped, and the fields that concern the termination are validated as by the
// API server (package validation).
//
// # Concurrency properties
//
// There is no shared state. Watch starts one goroutine, which ends with its context.
//
// # Failure modes
//
// Load reports all problems of a folder at once: the error joins one line for each, with
// file, field and value. It then returns no pods. Warnings name files that are not read,
// and fields that have no effect or another one than their author may expect.
//
// # Testing
//
// The tests read real folders in t.TempDir.
package manifest
