// Package apiservertest tests graceperiod against the API server's own code: both must
// answer deletes of pods in the same way. It is a module of its own, so that users of
// kubegrace do not inherit k8s.io/apiserver.
package apiservertest
