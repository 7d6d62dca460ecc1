// Virtualkubelet is a Kubernetes node whose containers are processes of this machine.
// Authors of a provider for virtual-kubelet can start from this program.
//
//	go run ./virtualkubelet --kubeconfig ~/.kube/config --node processes
//	kubectl run web --image none --overrides '{"spec": {"nodeName": "processes"}}' --command -- sleep 600
//	kubectl delete pod web
//
// main.go is the whole program. Replace runtime.go, which has four methods, by your own
// runtime. streams.go has what virtual-kubelet requires besides pods. The node has no
// capacity, so only pods with its nodeName are scheduled to it. nodeutil has options for
// both.
//
// On SIGTERM and SIGINT the program terminates its pods as a kubelet does in a node
// shutdown: with hooks, in order, within their grace periods. It ends when the API server
// has acknowledged the final status of every pod. A second signal ends it at once.
package main
