// Package podinfo enriches the pods of a container runtime with what the runtime does not know:
// their priority, which of their containers are sidecars, their owners and their conditions.
//
// Two sources know this: an API server ([WatchAPIServer]), and the kubelet's own pods endpoint
// ([KubeletPods]). What they know about a pod is kept in an [Info], and in a file, for as long as the runtime
// has the pod. It is therefore known when the node shuts down, even if neither source answers during the
// shutdown: the API server may be out of reach, and the agent stops the kubelet before the pods. A pod that
// neither source knows gets the priority of the first [Rule] that matches it.
//
// All methods may be called concurrently. If a source does not answer, what it has sent earlier stays. A file
// that cannot be read counts as empty. [Info.Save] returns an error if it cannot write the file.
package podinfo
