// Command virtualkubelet is a Kubernetes node whose containers are processes of this
// machine. Authors of a provider for virtual-kubelet can start from this program.
//
//	go run ./virtualkubelet --kubeconfig ~/.kube/config --node processes
//	kubectl run web --image none --overrides '{"spec": {"nodeName": "processes"}}' --command -- sleep 600
//	kubectl delete pod web
//
// main.go connects virtual-kubelet to package lifecycle/virtualkubelet. runtime.go is a
// runtime of four methods, to be replaced by your own. jobs.go is the other kind of runtime, for
// pods that run as a whole at another place: --jobs is the URL of a service. streams.go has the methods for logs,
// exec, stats and metrics, which virtual-kubelet requires and this node does not serve.
//
// The node reports no capacity, so the scheduler gives it no pods. Only pods whose nodeName
// is set to it run there. nodeutil has options for a capacity, and for serving logs and exec.
//
// # Concurrency properties
//
// virtual-kubelet and the drain call the runtime concurrently. Its containers are in a
// sync.Map, and no other state is shared. virtual-kubelet goes on until the pods have ended.
//
// # Failure modes
//
// On SIGTERM and SIGINT the program refuses new pods and terminates the others as a kubelet
// does in a node shutdown: with hooks, in order, within their grace periods. It ends when the API server
// has acknowledged the final status of every pod. A second signal ends it at once, and then
// the processes of its pods keep running.
//
// # Testing
//
// The tests run the program, and virtual-kubelet's own end-to-end suite with both kinds of
// runtime, at a real API server. They are skipped where no API server can be built. The provider
// of jobs is also tested in virtual time, over a service that loses requests, fails and lets jobs
// run on, with an agent that is killed and started again at any moment.
package main
