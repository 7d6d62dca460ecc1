package source

import "time"

// Kind is what the host is going to do, in logind's words.
type Kind string

const (
	// KindUnknown means that the source does not know. It is treated as a power off.
	KindUnknown Kind = ""
	// KindPoweroff switches the machine off. This kind and those below are the types in logind's
	// PrepareForShutdownWithMetadata signal.
	KindPoweroff Kind = "poweroff"
	// KindReboot starts the machine again.
	KindReboot Kind = "reboot"
	// KindHalt stops the system and leaves the machine switched on.
	KindHalt Kind = "halt"
	// KindKexec boots another kernel without the firmware.
	KindKexec Kind = "kexec"
	// KindSoftReboot restarts user space under the same kernel.
	KindSoftReboot Kind = "soft-reboot"
)

// Kinds returns all kinds but [KindUnknown], in the order above. Every source takes the names of kinds
// from it.
func Kinds() []Kind {
	return []Kind{KindPoweroff, KindReboot, KindHalt, KindKexec, KindSoftReboot}
}

// Event announces or cancels a shutdown of the host. The zero value is a shutdown that begins
// now, of an unknown kind and without a deadline.
type Event struct {
	Cancelled bool      // the shutdown that Origin has announced will not happen
	Kind      Kind      // what the host is going to do
	Deadline  time.Time // when the host shuts down at the latest; zero: not known
	// Origin is who announces the shutdown, such as "logind" or "SIGTERM". Several may announce one
	// at the same time. A cancellation takes back the announcement of its Origin, and leaves those of
	// others. One without an Origin takes back what its [Session] has announced or, given to the
	// manager's Trigger, all announcements.
	Origin string
}
