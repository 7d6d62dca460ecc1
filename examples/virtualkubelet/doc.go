// Command virtualkubelet is a Kubernetes node whose containers are processes of this machine. Start from it to write
// a provider for virtual-kubelet.
//
//	go run ./virtualkubelet --kubeconfig ~/.kube/config --node processes
//	kubectl run web --image none --overrides '{"spec": {"nodeName": "processes"}}' --command -- sleep 600
//	kubectl delete pod web
//
// main.go connects virtual-kubelet to package lifecycle/virtualkubelet. runtime.go is a runtime of five methods, for
// containers; jobs.go is a runtime for pods that run as a whole elsewhere, and --jobs is the URL of its service. Replace
// one of them by your own. streams.go has the methods for logs, exec, stats and metrics, which virtual-kubelet requires and
// this node does not serve.
//
// The node reports no capacity, so the scheduler assigns it no pods: set nodeName. nodeutil has options for capacity,
// logs and exec.
//
// # Failures
//
// On SIGTERM and SIGINT the program refuses new pods and drains the others as a kubelet does in a node shutdown. It exits
// when the API server has accepted the final status of every pod. A second signal ends it at once, and the processes of its
// pods keep running.
//
// # Concurrency
//
// virtual-kubelet and the drain call the runtime concurrently. Its only shared state is a sync.Map. virtual-kubelet
// runs until the drain is over.
//
// # Testing
//
// The tests run the program over both runtimes, and virtual-kubelet's end-to-end suite over runtime.go, at a real API
// server. They are skipped if no API server can be built. Another test sends the requests of jobs.go to a service.
package main
