// Package apiserver is the agent's side of an API server: it shows the static pods of
// the node there as mirror pods, says what a shutdown does to the node and to them,
// and records events.
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
//	go client.KeepMirror(ctx, static[0], observed) // runs beside the pod
//	manager, err := shutdown.NewManager(shutdown.Options{
//		Reporter: client,
//		Events:   client,
//		Node:     client.Node(),
//		...
//
// A pod of a manifest is not one of the API server's: what the API server has is its
// mirror, which the node makes, and which shows the pod and nothing more. As with the
// kubelet, its name ends in that of the node, and it has the hash of the manifest by
// which one knows whether it still shows the pod as it is.
//
// # Concurrency properties
//
// All methods of a [Client] may be called concurrently; [Client.KeepMirror] once for
// each pod. Nothing waits for the API server but who calls PublishNode, FlushPods,
// MarkReady and NodeExists. The goroutines that send events end with
// [Client.Close], which cuts the request under way and does not wait for its end:
// client-go has no way to.
//
// # Failure modes
//
// A static pod runs without an API server, so nothing here is an error that ends the
// agent, but a kubeconfig that cannot be used and names that are none. What cannot be
// written is tried again with growing pauses. Events that cannot be sent are lost after
// some attempts, as the kubelet's are.
//
// The state of a mirror belongs to one writer at a time: to KeepMirror until the node
// shuts down, then to the shutdown. A write is made only on what was read before it was
// asked whether the node shuts down, so that a late one fails as a conflict, and says of
// no pod that it is ready when the shutdown has said that it is not.
//
// # Testing
//
// [New] takes any kubernetes.Interface, a fake one of client-go too. Package clustertest
// has a real API server that fails on demand.
package apiserver
