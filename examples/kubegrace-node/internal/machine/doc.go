// Package machine inspects one machine, and says what would happen to its pods at the next systemctl
// poweroff, and why:
//
//	state := machine.Look(ctx, machine.Options{})
//	verdict := state.Judge(false) // false: the configuration that it has read is the kubelet's
//
// It reads systemd-logind's limit and locks from the bus, logind's files, the kubelet's command line
// and configuration, and its pods. It changes nothing: it takes no lock, reloads nothing, and starts
// no service.
//
// # Concurrency properties
//
// Look may be called concurrently. Of the methods of a [State] only ReadPods changes it.
//
// # Failure modes
//
// [State.NotSeen] names what cannot be read, with the reason and a remedy. A verdict that would need it says
// so. Look itself does not fail. It waits at most ten seconds for answers, and less if its context ends.
//
// # Testing
//
// [Options.Root] is a folder that stands for the machine's file system, with /proc and the socket of a bus, such as one of
// package logindhost.
package machine
