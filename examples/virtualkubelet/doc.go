// Virtualkubelet is a node of Kubernetes whose containers are processes of this machine:
// the program that the author of a provider for virtual-kubelet starts from.
//
//	go run ./virtualkubelet --kubeconfig ~/.kube/config --node processes
//	kubectl run web --image none --overrides '{"spec": {"nodeName": "processes"}}' --command -- sleep 600
//	kubectl delete pod web
//
// main.go is the whole program. Put a runtime of your own in the place of runtime.go,
// which is four methods; streams.go has what virtual-kubelet asks for beside pods, and
// the node has no capacity, so that no pod comes here but by its nodeName: see nodeutil
// for both.
//
// When it is told to stop (SIGTERM, SIGINT), it ends its pods as a kubelet ends them in a
// node shutdown: hooks, order and grace periods, and a final status of each that the API
// server has taken before the program ends. A second signal ends it at once.
package main
