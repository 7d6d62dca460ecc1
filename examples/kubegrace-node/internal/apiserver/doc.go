// Package apiserver reports a node and its pods to an API server. The kubeconfig may come later than the
// agent: until [Client.Load] has succeeded every report fails, and the shutdown manager tries it again. All
// methods of a [Client] may be called concurrently. Errors of Load name the file.
package apiserver
