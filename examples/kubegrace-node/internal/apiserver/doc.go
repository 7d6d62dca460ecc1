// Package apiserver reports a node and its pods to an API server. The kubeconfig may come later than the
// agent: until [Client.LoadKubeconfig] has succeeded every report fails, and the shutdown manager tries it again. All
// methods of a [Client] may be called concurrently. Errors of LoadKubeconfig name the file.
package apiserver
