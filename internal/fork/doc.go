// Package fork is for maintainers of a kubelet fork. The folders v1.32 and v1.37 have the files that a fork copies to use
// kubegrace, at their paths in the fork. SERIES.md has the commands. Each folder is a module k8s.io/kubernetes with
// handwritten declarations of what the files use, so that they are compiled and tested here. Nobody imports them.
package fork
