// Package fork is for the maintainers of a fork of the kubelet. Its folders v1.32 and v1.37 have
// the files that a fork copies to use kubegrace, at the paths where they go, and SERIES.md says
// how. Beside these files stand declarations of k8s.io/kubernetes by our own hand, so that the
// files are compiled and tested here: each folder is a module of that name. Nobody imports them.
package fork
