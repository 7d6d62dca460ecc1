// Package e2e runs kubegrace-node status on whole machines with systemd 252 and 257, in the states that an
// operator meets (build tag e2e). Its kubelet is a process of that name and command line, with the
// lock of a kubelet.
//
// # Concurrency properties
//
// The machines run one after the other.
//
// # Failure modes
//
// See package machine.
//
// # Testing
//
// What is printed is compared with the files of testdata, the same ones for both releases. With
// KUBEGRACE_GOLDEN=1 go test writes them.
package e2e
