// Apiserver is a real API server for tests: the handlers, the storage and the watch
// cache of k8s.io/apiserver over an etcd in the same process. Tests start it by
// [github.com/kubegrace/kubegrace/internal/apiserverprocess]; by hand it is
//
//	go run . --listen 127.0.0.1:8001
//	kubectl --server http://127.0.0.1:8001 get pods
//
// It prints its URL on the standard output as soon as it is ready, logs to the
// standard error, and ends at SIGINT, SIGTERM or, with --exit-on-stdin-eof, when its
// standard input ends. It serves plain HTTP and lets everybody do everything.
//
// It has pods, nodes, namespaces, events, configmaps, secrets and services of v1 and
// leases of coordination.k8s.io/v1, with every verb of theirs, with /status of pods
// and nodes, and with JSON, protobuf, server-side apply and discovery. Pods are
// deleted as [graceperiod.PodDeleteStrategy] says.
//
// It is a module of its own, so that no importer of kubegrace inherits the hundred
// modules that it needs.
//
// # What a cluster has and this has not
//
//   - Validation of specs and statuses; the metadata are validated. A container may go
//     from terminated to running, a pod may change its node.
//   - Defaults of hooks, probes, ports, volumes and services.
//   - Admission: a namespace need not exist, no service account is mounted, no priority
//     is resolved.
//   - Users, RBAC, and priority and fairness; there are the limits of requests in
//     flight (400, of which 200 that write), beyond which it answers 429.
//   - Controllers: namespaces are deleted at once and nothing else with them.
//   - The subresources binding, eviction, exec, log, resize and ephemeralcontainers.
package main
