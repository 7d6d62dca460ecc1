// Package apiservertest proves that graceperiod answers deletes of pods as the API
// server does, by running the API server's own code beside it. It is a module of
// its own, so that no importer of kubegrace inherits k8s.io/apiserver.
package apiservertest
