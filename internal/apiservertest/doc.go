// Package apiservertest tests graceperiod against the API server's own code: both must
// answer deletes of pods in the same way. And it tests what a DaemonSet controller with the
// rule of KEP-6249 does, at a real API server, on a node whose agent has a shutdown.Manager.
// It is a module of its own, so that users of kubegrace do not inherit k8s.io/apiserver.
package apiservertest
