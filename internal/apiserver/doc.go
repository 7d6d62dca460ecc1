// Apiserver is a real API server for tests: the handlers, the storage and the watch cache
// of k8s.io/apiserver over an etcd in the same process. Tests start it with
// [github.com/kubegrace/kubegrace/internal/apiserverprocess]. To start it by hand:
//
//	go run . --listen 127.0.0.1:8001
//	kubectl --server http://127.0.0.1:8001 get pods
//
// It prints its URL on the standard output when it is ready and logs to the standard
// error. It ends on SIGINT, on SIGTERM and, with --exit-on-stdin-eof, at the end of its
// standard input. It serves plain HTTP and allows everybody everything.
//
// It serves pods, nodes, namespaces, events, configmaps, secrets and services of v1 and
// leases of coordination.k8s.io/v1, with all their verbs, /status of pods and nodes,
// JSON, protobuf, server-side apply and discovery. Pods are deleted by the rules of
// [graceperiod.PodDeleteStrategy].
//
// It is a module of its own, so that users of kubegrace do not inherit its hundred
// dependencies.
//
// # What it leaves out
//
//   - Validation of specs and statuses; only metadata are validated. A container may change from
//     terminated to running, and a pod may change its node.
//   - Defaults of hooks, probes, ports, volumes and services.
//   - Admission: a namespace need not exist, no service account is mounted, and priorities are not
//     resolved.
//   - Users, RBAC, and priority and fairness. There are limits for requests in flight (400 that
//     read and 200 that write), beyond which it answers 429.
//   - Controllers: a namespace is deleted at once, and its objects stay.
//   - The subresources binding, eviction, exec, log, resize and ephemeralcontainers.
package main
