// Package units stops what would start pods again while a node is drained, such as
// kubelet.service, keeps it from being started meanwhile, and starts it again afterwards.
//
// Before a unit is stopped, that it is stands in a file of the state folder, which is synced. The
// next agent of the same boot finds it there ([Keeper.Stopped]). A drop-in under
// /run, which a boot removes, has a condition that is not met, so that systemd does not start the
// unit; a mask would do nothing for a unit in /etc.
//
// All methods may be called concurrently; one changes units at a time. If the file cannot be
// written, for example on a full disk, the drop-in says the same, and the unit is stopped. A unit that does
// not stop in half of the time of the context is killed, its main process only. A bus that does not answer
// fails the call; the caller tries again.
package units
