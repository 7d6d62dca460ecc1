// Command processagent is a node agent of one file: it runs the pods of a folder of manifests
// as processes of this machine, and ends them as a kubelet ends its pods when it is told to
// stop and when the machine shuts down. Its README.md goes through it step by step.
package main
