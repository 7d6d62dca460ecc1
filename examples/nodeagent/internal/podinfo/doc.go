// Package podinfo adds to the pods of a container runtime what the runtime does not know:
// their priority, which of their containers are sidecars, their owners and conditions.
//
//	info := podinfo.New("/var/lib/nodeagent", rules)
//	runtime, err := criruntime.Dial(ctx, endpoint, criruntime.Options{Complete: info.Complete})
//
// Who knows a pod tells it: an API server ([WatchAPIServer]), or the kubelet's own pods endpoint
// ([Kubelet]). What was told is kept while the runtime has the pod, also in a file: neither need
// be there when the node shuts down, and the kubelet is not. A pod of which nobody has told has
// the priority of the first [Rule] that fits.
//
// # Concurrency properties
//
// All methods may be called concurrently. WatchAPIServer runs in the caller's goroutine and
// waits for those that it starts.
//
// # Failure modes
//
// A source that does not answer leaves what was told before. A file that cannot be read counts
// as empty; [Info.Keep] returns the error of one that cannot be written.
//
// # Testing
//
// The tests use a server of net/http/httptest as the kubelet, and client-go's fake clientset. Those of
// package e2e have a real API server.
package podinfo
