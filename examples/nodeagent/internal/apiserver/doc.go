// Package apiserver connects the agent to an API server. It shows the static pods of the
// node there as mirror pods, writes what a shutdown does to the node and the pods, and
// sends events.
//
//	config, err := apiserver.Load("/etc/kubernetes/kubelet.conf")
//	if err != nil {
//		return err
//	}
//	static, err := apiserver.StaticPods(pods, "node-1", time.Now())
//	if err != nil {
//		return err
//	}
//	client, err := apiserver.Connect(ctx, config, "node-1", static)
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	go client.KeepMirror(ctx, static[0], observed) // while the pod runs
//	manager, err := shutdown.NewManager(shutdown.Options{
//		Reporter: client,
//		Events:   client,
//		Node:     client.Node(),
//		...
//
// A pod of a manifest is a static pod: the API server does not have it, but a mirror pod
// that the node creates and that only shows it. As with the kubelet, the name of the
// mirror ends in the name of the node, and an annotation has the hash of the manifest, by
// which a mirror of an older manifest is found.
//
// # Concurrency properties
//
// All methods of a [Client] may be called concurrently; [Client.KeepMirror] once for each
// pod. Only PublishNode, FlushPod, MarkNotReady, NodeExists and RemoveMirror wait for the
// API server, and KeepMirror, which runs until its context ends. The goroutines that send
// events end with [Client.Close]. It cancels the request in flight and does not wait for
// it, because client-go has no way to.
//
// # Failure modes
//
// Static pods run without an API server, so nothing here ends the agent except a
// kubeconfig that cannot be used and invalid names. A write to a mirror that fails is
// tried again with growing pauses. Events that cannot be sent are lost after some
// attempts, as the kubelet's are.
//
// At any time one writer owns the status of a mirror: KeepMirror until the pod or the
// node is shut down, then the shutdown. KeepMirror reads the mirror, asks whether the pod
// is ending, and then writes on the condition that the mirror has not changed since it
// was read. So a late write fails with a conflict and cannot mark a pod as ready that the
// shutdown has marked as not ready.
//
// # Testing
//
// [New] takes any kubernetes.Interface, such as client-go's fake. Package clustertest has
// a real API server behind a proxy that fails on demand.
package apiserver
