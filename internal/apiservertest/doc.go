// Package apiservertest compares package graceperiod with the API server's own code for deleting pods. It
// also tests, with a real API server, that a DaemonSet controller with KEP-6249's rule creates no pods on a
// node whose shutdown.Manager shuts down. It is its own module, so that users of kubegrace do not inherit
// k8s.io/apiserver.
package apiservertest
