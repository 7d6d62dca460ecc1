// Package machine looks at one machine, and says what would happen to its pods at the next systemctl
// poweroff, and why:
//
//	state := machine.Look(ctx, machine.Options{})
//	verdict := state.Judge(nil)
//
// It reads systemd-logind's limit and locks from the bus, logind's files, the kubelet's command line
// and configuration, and its pods. It changes nothing: it takes no lock, reloads nothing, and starts
// no service.
//
// # Concurrency properties
//
// The functions may be called concurrently; a State is not changed after Look.
//
// # Failure modes
//
// What cannot be read is named in [State.NotSeen], with the reason and a way out, and a verdict that
// would need it says so. Look itself does not fail. It ends with its context; without one that ends,
// what does not answer is given up after ten seconds.
//
// # Testing
//
// [Options.Root] is a folder that stands for the machine's file system, /proc included, and
// [Options.Bus] is the address of a bus, such as one of package logindtest.
package machine
