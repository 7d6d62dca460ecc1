// Package units stops systemd units that would start pods again during a drain, such as kubelet.service. It
// prevents systemd from starting them during the drain, and starts them again afterwards.
//
// Before a unit is stopped, its name is written to a file under /run. An agent that is restarted
// during the drain reads the names there ([Keeper.Stopped]). A reboot empties /run and starts the units anyway. To
// prevent a start, a drop-in, also under /run, gives the unit a condition that is false. A mask under /run
// would have no effect on a unit whose file is in /etc.
//
// All methods may be called concurrently; units are changed by one call at a time. If the file of stopped units
// cannot be written, the unit is stopped all the same. If a unit has not stopped after half of the time that the context
// allows, its main process is killed. If systemd does not answer, the call fails, and the caller tries again.
package units
