// Package units stops what would start pods again while a node is drained, such as
// kubelet.service, keeps it from being started meanwhile, and starts it again afterwards.
//
// What is stopped stands in a file under /run before it is. The next agent of the same boot finds it there
// ([Keeper.Stopped]); a boot removes it, and starts the units by itself. A drop-in, also under /run, has a condition that
// is not met, so that systemd does not start the unit; a mask would do nothing for a unit in /etc.
//
// All methods may be called concurrently; one changes units at a time. If the file cannot be written, the unit is stopped
// all the same. A unit that does not stop in half of the time of the context is killed, its main process only. A bus
// that does not answer fails the call; the caller tries again.
package units
