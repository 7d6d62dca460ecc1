// Package apiserver reports a node and its pods to an API server, as soon as there is a usable
// kubeconfig: until [Client.Load] has succeeded every report fails, and the manager tries it again.
// All methods of a [Client] may be called concurrently. Errors of Load name the file.
package apiserver
