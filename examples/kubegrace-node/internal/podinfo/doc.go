// Package podinfo adds to the pods of a container runtime what the runtime does not know:
// their priority, which of their containers are sidecars, their owners and conditions.
//
// Who knows a pod tells it: an API server ([WatchAPIServer]), or the kubelet's own pods endpoint
// ([KubeletPods]). What was told is kept while the runtime has the pod, also in a file: neither need
// be there when the node shuts down, and the kubelet is not. A pod of which nobody has told has
// the priority of the first [Rule] that fits.
//
// All methods may be called concurrently. A source that does not answer leaves what was told
// before. A file that cannot be read counts as empty; [Info.Keep] returns the error of one that cannot be written.
package podinfo
