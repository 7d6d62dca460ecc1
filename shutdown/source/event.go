package source

import "time"

// Kind is the kind of a shutdown. The values are the types in logind's PrepareForShutdownWithMetadata
// signal.
type Kind string

const (
	// KindUnknown is treated as KindPoweroff.
	KindUnknown Kind = ""
	// KindPoweroff switches the machine off.
	KindPoweroff Kind = "poweroff"
	// KindReboot starts the machine again.
	KindReboot Kind = "reboot"
	// KindHalt stops the system without switching the machine off.
	KindHalt Kind = "halt"
	// KindKexec boots another kernel directly.
	KindKexec Kind = "kexec"
	// KindSoftReboot restarts user space under the same kernel.
	KindSoftReboot Kind = "soft-reboot"
)

// Kinds returns all kinds except [KindUnknown].
func Kinds() []Kind {
	return []Kind{KindPoweroff, KindReboot, KindHalt, KindKexec, KindSoftReboot}
}

// Event announces or cancels a shutdown of the host. The zero value announces a shutdown of an
// unknown kind without a deadline.
type Event struct {
	Cancelled bool      // cancels the shutdown that Origin announced
	Kind      Kind      // the kind of the shutdown
	Deadline  time.Time // when the host shuts down at the latest; zero: unknown
	// Origin is who announces the shutdown, such as "logind" or "SIGTERM". A cancellation withdraws
	// only the announcement of its Origin. A cancellation without an Origin withdraws the announcement
	// of its [Session] or, if passed to the manager's Trigger, all that Trigger made.
	Origin string
}
